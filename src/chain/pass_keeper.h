// Keeps a pass on disk while it goes on, so that another process can resume it, and resumes one.
//
// kept_pass.h says what is in the files, and in which order they come and go. PassKeeper decides what becomes a file,
// and whether what is found belongs to the pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chain/chain_context.h"
#include "chain/kept_pass.h"
#include "chain/pass_sizes.h"
#include "reprise/chain/any_chain.h"

namespace reprise::internal {

// States are named by their number in the chain unless something else is said.
class PassKeeper {
 public:
  PassKeeper(ChainContext& context, const PassSizes& sizes) : context_(context), sizes_(sizes) {}

  // ---- between two passes ----

  // Looks for a pass in the folder, which the next forward resumes. Throws ChainError if the pass is one of another
  // chain, DiskError if a file is damaged.
  [[nodiscard]] ChainResume find(std::uint64_t fingerprint);
  // Says that the next pass has another disk.
  void disk_changed();
  // Throws ChainError if the next pass cannot be kept, or if the folder has one that would be lost.
  void require_can_keep() const;
  // Removes the pass that is in the folder.
  void clear();

  // ---- a pass that is kept ----

  [[nodiscard]] bool is_on() const { return is_on_; }
  // Begins to keep the pass that has begun with this input.
  void begin(Id input);
  // Throws BadOption if the part that was opened keeps more than the disk may have. Parts that are run once more, and
  // what is left of a pass that was resumed, do without some of it if need be.
  void require_room(Id input);
  // Keep what has been made. The states are those of the part.
  void keep_put(Id state, StateTier, const ArrayView&);
  void keep_if_remembered(Id state);
  void keep_result();
  // Keeps the fingerprint of the gradient that backward begins with. In a pass that was resumed, replaces the gradient
  // by the last one that was kept.
  void keep_seed();
  // Keeps the gradient with respect to this state if the state is kept.
  void keep_gradient(Id state);
  // Waits until everything is safe.
  void finish() { kept_.finish(); }
  void stop() noexcept { is_on_ = false; }

  // ---- a pass that is resumed ----

  [[nodiscard]] bool has_found() const { return found_.has_value(); }
  // Goes on with what was found. False if a new pass begins instead, because the one that was kept is over and its
  // input was another one.
  [[nodiscard]] bool resume(Id input);
  // Returns the layer where backward of a pass whose forward is over goes on. Empty: forward goes on.
  [[nodiscard]] std::optional<Id> backward_end() const;
  // Returns the last state that is kept, up to this one. Empty if there is none, or if no pass is kept.
  [[nodiscard]] std::optional<Id> last_state_up_to(Id state) const;
  // Makes a state or the result of what was kept. Throws ChainError if it cannot be one of this pass.
  [[nodiscard]] Id decode_state(Id state) { return decode(state, state); }
  [[nodiscard]] Id decode_result() { return decode(context_.layers().size(), "result"); }
  // The state that was decoded last: forward makes it again when backward has come there.
  struct Decoded {
    Id state = nowhere;
    std::uint64_t fingerprint = 0;
  };
  [[nodiscard]] const Decoded& last_decoded() const { return last_decoded_; }
  // Removes the pass and throws ChainError unless the state in this slot, which forward has made from state `from`, is
  // the one that was decoded.
  void require_same(const Decoded&, Id slot, Id from);

 private:
  [[nodiscard]] PassRecord record_of(Id input) const;
  [[nodiscard]] Bytes most_bytes_of_part(Id input) const;
  // True if states that the schedule remembers are kept, and not only those that it puts on disk.
  [[nodiscard]] bool is_keeping_remembered() const { return pass_.is_forward() && has_room_for_more_; }
  [[nodiscard]] Id decode(Id state, const Key&);
  void decode_gradient(Id state);
  [[nodiscard]] Array read(Id state, const Key&);
  [[nodiscard]] std::uint64_t fingerprint_as_compared(const ArrayView&) const;
  [[noreturn]] void refuse(const Key&, const std::string& why) const;

  ChainContext& context_;
  ChainStates& states_ = context_.states;
  const ChainSetup& setup_ = context_.setup;
  StateTiers& tiers_ = context_.tiers;
  const ChainPass& pass_ = context_.pass;
  const PassSizes& sizes_;
  KeptPass kept_{context_.tiers};
  bool is_on_ = false;
  bool has_room_for_more_ = true;  // false: the disk is too small for states that it need not have
  bool folder_is_ours_ = false;    // what the folder has is this chain's, or the caller knows of it
  bool has_known_sizes_ = false;   // the sizes that were set or measured are those of the states of the pass
  std::uint64_t fingerprint_ = 0;  // the caller's
  std::optional<KeptPass::Found> found_;
  std::uint64_t input_ = 0;  // of a pass that was resumed: the fingerprint of its input
  Decoded last_decoded_;
};

}  // namespace reprise::internal
