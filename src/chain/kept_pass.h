// A pass as it is kept on disk, for another process to go on with.
//
// In the store of the disk are, by key:
//   pass        which pass it is: what PassRecord says. Comes first and goes first; without it the rest is nothing
//   K           state K, for every state that the schedule remembered in forward and backward still needs
//   result      the state after the last layer
//   seed        the fingerprint of the gradient that backward began with
//   gradient K  the gradient with respect to state K. The one with the smallest K counts; states from K on go when
//               it is safe on disk
// A value is safe once its file has its name, which is the last thing that happens to it. Whatever is missing at the
// end of a process was not safe, and is made again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chain/state_tiers.h"
#include "reprise/chain/any_chain.h"

namespace reprise::internal {

struct PassRecord {
  std::uint64_t layers = 0;
  std::uint64_t numbers = 0;      // fingerprint of those of the layers
  std::uint64_t first = 0;        // layer
  std::uint64_t fingerprint = 0;  // the caller's
  std::uint64_t input = 0;        // fingerprint
  std::uint64_t input_bytes = 0;
};

class KeptPass {
 public:
  explicit KeptPass(StateTiers& tiers) : tiers_(tiers) {}

  struct Found {
    PassRecord record;
    std::set<Id> states;
    bool result = false;
    std::optional<std::uint64_t> seed;
    std::set<Id> gradients;
    std::optional<Id> gradient;  // that counts
    [[nodiscard]] bool is_over() const {
      return result && (gradient == static_cast<Id>(record.first) || record.first == record.layers);
    }
  };
  // Reads and checks everything that is in the folder, which must not be in use. Empty if there is no pass. Throws
  // DiskError, and ChainError if the folder has a value that no chain has written.
  [[nodiscard]] std::optional<Found> find() const;

  // Begins a new pass with this input and removes what was there. `is_limited`: the budget has no memory for states
  // that wait to be written or are coded.
  void begin(const PassRecord&, const ArrayView& input, bool is_limited);
  // Resumes the pass that was found in the folder.
  void resume(Found, const ArrayView& input, bool is_limited);
  [[nodiscard]] const std::set<Id>& states() const { return states_; }
  // Returns the bytes of all files, also of those that are still to be written.
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  // Return the bytes of two files that are always of the same size, and the key of a third.
  [[nodiscard]] static Bytes record_bytes();
  [[nodiscard]] static Bytes seed_bytes();
  [[nodiscard]] static std::string gradient_key(Id state) { return "gradient " + std::to_string(state); }

  void put_state(Id state, const ArrayView&);
  void put_result(const ArrayView& array) { put("result", array, tiers_.settings().codec); }
  void put_seed(std::uint64_t fingerprint);
  // Keeps the gradient with respect to this state. From now on only states before this one are needed.
  void put_gradient(Id state, const ArrayView&);
  [[nodiscard]] Array get(const Key& key) { return store_->get(key); }
  // Returns the bytes of an array as it is returned, without reading it.
  [[nodiscard]] Bytes array_bytes(const Key& key) const { return store_->describe(key).plain_bytes; }
  // Waits until everything is safe. Throws DiskError.
  void finish();
  // Removes everything, in the folder as well.
  void clear();

 private:
  void put(const Key&, const ArrayView&, const Codec* = nullptr);  // null: exact
  [[nodiscard]] bool put_now(const Key&, const ArrayView&, const Codec*);
  void erase(const Key&);
  [[nodiscard]] Bytes file_bytes(const Key&) const;
  void remove_unneeded();

  StateTiers& tiers_;
  Store* store_ = nullptr;  // of the pass that goes on
  std::set<Id> states_;
  std::vector<Id> gradients_;  // descending
  Bytes bytes_ = 0;            // of all files
};

}  // namespace reprise::internal
