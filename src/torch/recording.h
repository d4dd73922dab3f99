// A recording: the live side of a period. Which storage holds which value now, what is kept, packed or forgotten, and
// which saved tensors wait for it.
//
// A value is one version of one storage. It is *bound* while its storage has its contents: the storage's memory carries
// a tag that names the value, and an operator that writes there binds the storage to the next version. A value is
// *kept* while the recording has a handle on its storage, and *resident* if it is kept, or bound and alive because the
// program has handles of its own. Everything else is rebuilt from its recipe, or from its packed copy.
//
// Values that came from outside, and those whose recipe cannot be replayed, have no maker: they are kept for as long
// as a recipe may need them.
//
// Everything here happens under the arbiter's lock, unless it says otherwise.
#pragma once

#include <c10/util/SmallVector.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "reprise/store/packing.h"
#include "torch/arbiter.h"
#include "torch/draws.h"
#include "torch/libtorch.h"
#include "torch/observations.h"
#include "torch/recipes.h"
#include "torch/victims.h"

namespace reprise::internal {

class SavedHook;
class SessionState;
class Executor;
struct Period;

// A value without its storage, in few bytes that count in the budget.
class PackedCopy {
 public:
  // Nothing if the contents do not fit the form or there is no room for the copy. Whoever unpacks it shares it.
  static std::shared_ptr<const PackedCopy> of(const PackedForm&, const c10::Storage&);
  ~PackedCopy();
  PackedCopy(const PackedCopy&) = delete;
  PackedCopy& operator=(const PackedCopy&) = delete;
  [[nodiscard]] Bytes bytes() const { return charged_; }
  [[nodiscard]] std::size_t plain_bytes() const { return form_.plain_bytes(); }
  void restore(const c10::Storage&) const;

 private:
  PackedCopy() = default;
  PackedForm form_;
  std::unique_ptr<std::byte[]> data_;
  Bytes charged_ = 0;
};

struct LiveValue {
  libtorch::WeakStorage storage;  // the one it was last bound to
  c10::Storage kept;              // our own handle; empty: not kept
  std::shared_ptr<const PackedCopy> packed;
  libtorch::Version version;  // of the tensor it was found in; tells writes that nobody recorded
  std::uint32_t expected_version = 0;
  c10::SmallVector<SavedHook*, 2> hooks;  // saved tensors that wait for it
  float saved_at = 0;      // cost of the period up to its last save: how long ago, and so how soon it is needed
  bool copied = false;     // `kept` is a copy of our own, made before the program overwrote the contents
  bool dropped = false;    // the plan has dropped it: a save does not keep it
  bool lost = false;       // from outside, and overwritten while no recipe needed it, or without room for a copy
  bool no_room = false;    // there was none for a copy
  bool orphan = false;     // its recipe needs a lost value, directly or not: kept like one from outside
  int uses = 0;            // by recipes of this recording
  bool forgotten = false;  // it was let go while saved tensors wait for it

  bool met = false;  // it has been bound

  LiveValue() : storage(c10::intrusive_ptr<c10::StorageImpl>()) {}
};

class Recording : public std::enable_shared_from_this<Recording> {
 public:
  // Follows these recipes for as long as the operators match; nullptr: writes its own from the start.
  Recording(std::shared_ptr<SessionState>, std::shared_ptr<Recipes> followed);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const std::shared_ptr<SessionState> session;
  const std::uint32_t number;        // in tags
  std::shared_ptr<Recipes> recipes;  // another period's while `following`
  bool following = false;
  bool sealed = false;          // others may follow its recipes: they do not change any more
  Id next = 0;                  // the operator to come
  Id current = no_operator;     // the one that runs
  std::vector<LiveValue> live;  // by value
  std::unordered_map<std::uint32_t, c10::IValue> changed_constants;  // numbers that differ from the recipes followed
  std::vector<draws::Tape> tapes;                                    // by operator: what it drew
  std::vector<float> costs;                                          // by operator, CPU microseconds
  bool observing = false;  // everything a trace needs is written down in `seen`
  Observations seen;
  bool measuring = false;  // the costs of operators
  double rebuilding = 0;   // microseconds of the present moment that went into rebuilding values
  bool measuring_other = false;
  std::vector<OtherBytes> other;       // by moment, if measured
  Id moment = 0;                       // the one to come
  bool lost_count = false;             // events were not watched: `moment` is too low
  std::shared_ptr<Period> period;      // whose recipes are followed
  bool expected = false;               // the period is the one that steps begin with, not a mere guess
  std::unique_ptr<Executor> executor;  // executes a plan; none: the online policy rules
  VictimQueue victims;
  bool keep_outside = false;  // what came from outside is held for the recipes; only if anything may be forgotten
  bool in_backward = false;
  bool went_back = false;             // a backward has ended
  const char* unplannable = nullptr;  // why its trace cannot be planned, if it cannot
  float now = 0;  // cost of the period so far; in backward, where the value asked for last was saved

  // ---- values ----
  [[nodiscard]] const RecordedValue& info(Id value) const;
  // By its recipe, whether it is resident or not.
  [[nodiscard]] bool rebuildable(Id value) const;
  [[nodiscard]] float cost_of(Id op) const;
  // What the policy says about it.
  [[nodiscard]] Choice choice_of(Id value) const;
  [[nodiscard]] int pending() const { return pending_; }
  // There were pending saved tensors, and now there are none.
  [[nodiscard]] bool is_over() const { return drained_ && pending_ == 0; }

  // The value that this storage holds, as far as this recording knows.
  [[nodiscard]] Id find(c10::StorageImpl*) const;
  // The same for a tensor; a storage that is unknown, or was written while nobody watched, is a new value from outside.
  [[nodiscard]] Id look_up(const at::Tensor&);
  Id add_from_outside(const at::Tensor&);
  Id add_from_outside(c10::StorageImpl*, const libtorch::Version&, std::uint32_t expected_version);
  // A value of the recipes that are followed has been met for the first time.
  void adopt_from_outside(Id value, const at::Tensor&);
  // Its storage was written by someone who was not recorded.
  [[nodiscard]] bool written_unseen(Id value) const;
  Id add_made(c10::StorageImpl*, Id op);
  // The storage has this value's contents from now on, and no longer those of the value it was bound to.
  void bind(c10::StorageImpl*, Id value);
  void unbind(c10::StorageImpl*, Id value);
  void remember_version(Id value, const at::Tensor&);

  [[nodiscard]] bool resident(Id value) const;
  // A handle on the contents; empty if it is not resident.
  [[nodiscard]] c10::Storage storage(Id value) const;
  // The same, also where everything has to be rebuilt.
  [[nodiscard]] c10::Storage anywhere(Id value) const;
  void keep(Id value, c10::Storage);
  // Lets go of our handle and the packed copy.
  void release(Id value);
  // Release, with a fingerprint for those who wait for it.
  void forget(Id value);
  // Packs it and lets go of the storage; false: it does not pack, or there is no room.
  bool pack(Id value, const PackedForm&);

  // ---- saved tensors ----
  void attach(SavedHook&, Id value, c10::StorageImpl*);
  void detach(SavedHook&);
  // The hooks of one value that saw no write go over to another version of its storage.
  void follow_writes(Id from, Id to);

  // Whether the recipe of a pending value, directly or not, needs this one.
  [[nodiscard]] bool needed(Id value);

  // ---- writes of the program, see writes.h ----
  // Whether the contents have to be copied before the program writes there: they came from outside, and recipes need
  // them.
  [[nodiscard]] bool would_copy(Id value);
  // The copy is what recipes get from now on.
  void replace(Id value, c10::Storage copy);
  // The program is about to write into a value's storage. What depends on it and was not copied cannot be rebuilt.
  void before_write(Id value);
  // The program has written into it, and not by an operator of this recording.
  void after_write(c10::StorageImpl*, const libtorch::Version& of_tensor);

  // The program itself has handles on its storage.
  [[nodiscard]] bool held_by_program(Id value) const;

  // The operators no longer match: from here on it writes its own recipes, a copy of those it followed up to the
  // operator to come; or, with the number of outputs that did match, to the current one. The online policy takes over.
  void diverge(const std::string& why, std::optional<std::size_t> outputs);
  // It follows another period that began in the same way.
  void change_to(const std::shared_ptr<Period>&);
  // A pass of backward has ended. True: everything that was saved since the one before is gone, and what is still
  // pending is older.
  [[nodiscard]] bool end_backward();
  // Its thread records elsewhere from now on: only what pending saved tensors need stays, and its recipes do not
  // change.
  void end();

  // ---- the operator that runs ----
  struct CurrentWrite {
    c10::Storage storage;
    Id before = no_value;
    std::int16_t index = 0;  // among the operator's writes
    Access access = Access::write;
    bool done = false;  // bound to the next version
  };
  std::vector<CurrentWrite> current_writes;
  std::vector<SavedHook*> waiting;  // saved in the operator that runs; bound when it ends
  std::size_t outputs_seen = 0;

 private:
  void adopt_from_outside(Id value, c10::StorageImpl*);
  Id new_value(Bytes bytes, Id maker);
  void take_fingerprints(Id value, const c10::Storage&);
  void observe_form(Id value, const c10::StorageImpl&, at::ScalarType);
  void pack_at_once(Id value, const c10::StorageImpl&, at::ScalarType);
  void orphan_dependents(Id value);
  void let_go(Id value);
  void renumber_extra(std::size_t from, std::size_t to);

  std::vector<RecordedValue> extra_;  // values beyond those of the recipes that are followed
  // Storages whose memory carries no tag of ours: from elsewhere, or tagged by another recording.
  std::unordered_map<c10::StorageImpl*, Id> elsewhere_;
  std::atomic<int> pending_ = 0;  // changes under the lock, is also looked at without
  int fresh_ = 0;                 // of them: attached since the last pass of backward has ended
  int backwards_ = 0;             // passes that have ended
  std::atomic<bool> drained_ = false;
  std::vector<bool> needed_;  // by value, if up to date
  bool needed_known_ = false;
};

// All recordings that are alive.
[[nodiscard]] std::vector<Recording*>& recordings();

}  // namespace reprise::internal
