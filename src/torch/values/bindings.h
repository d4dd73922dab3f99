// Bindings: which storage holds which value of a recording.
//
// A value is one version of one storage. It is *bound* while its storage has its contents: the storage's memory carries
// a tag that names the value, and an operator that writes there binds the storage to the next version. Memory that the
// meter does not know, or that another recording has tagged since, is looked up in a map.
//
// Under the arbiter's lock.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "torch/libtorch/libtorch.h"
#include "torch/memory/meter.h"
#include "torch/recipes/recipes.h"

namespace reprise::internal {

class Bindings {
 public:
  Bindings() = default;
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  // Of the recording, in tags. Before anything is bound.
  void number(std::uint32_t number) { number_ = number; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  void resize(std::size_t values) { all_.resize(values); }
  // Takes the tags off what is alive: nothing is bound any more.
  void clear();

  // The value that this storage holds, if that is known here.
  [[nodiscard]] Id find(c10::StorageImpl* storage) const {
    const meter::Header* const header = meter::header_of(*storage);
    if (header && header->tag.recording == number_) return header->tag.value;
    return elsewhere_.empty() ? no_value : find_elsewhere(storage);
  }
  // Binds a storage that is bound to no other value here. Tracked: the meter is not to count it among the other bytes.
  void bind(c10::StorageImpl*, Id value, bool tracked);
  void unbind(c10::StorageImpl*);

  // The storage that it is bound to; empty if it is bound to none.
  [[nodiscard]] c10::Storage storage(Id value) const;
  // The one that it was bound to last, if that is alive, whatever it holds now.
  [[nodiscard]] c10::Storage last_storage(Id value) const;
  // Returns whether there are handles of others than the recording on the storage that a value is bound to. `kept` is
  // the recording's own, or empty.
  [[nodiscard]] bool held_by_others(Id value, const c10::Storage& kept) const;

  // ---- writes that were not recorded ----
  void expect(Id value, const libtorch::Version&, std::uint32_t version);
  void expect_present(Id value, const at::Tensor&);
  void expect_nothing(Id value) { all_[value].version = libtorch::Version(); }
  // The counter of the tensor that it was found in has seen another write.
  [[nodiscard]] bool written_unseen(Id value) const {
    const Binding& binding = all_[value];
    return binding.version.enabled() && binding.version.current_version() != binding.expected_version;
  }

  // The values from `from` on are numbered from `to` on.
  void renumber(std::size_t from, std::size_t to);

 private:
  struct Binding {
    libtorch::WeakStorage storage{c10::intrusive_ptr<c10::StorageImpl>()};  // the one it was last bound to
    libtorch::Version version;
    std::uint32_t expected_version = 0;
  };

  [[nodiscard]] Id find_elsewhere(c10::StorageImpl*) const;

  std::uint32_t number_ = 0;
  std::vector<Binding> all_;                             // by value
  std::unordered_map<c10::StorageImpl*, Id> elsewhere_;  // storages whose memory carries no tag of ours
};

}  // namespace reprise::internal
