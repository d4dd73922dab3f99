// The engine of a chain: runs the caller's closures as the plan of a pass says.
//
// A pass goes forward through the layers, turns, and goes backward. The engine begins and ends passes and opens their
// parts (see chain_pass.h); the work is done by
//   PassExecutor   the actions of the plan, with the closures
//   PassSizes      what is larger than planned
//   PassKeeper     what of the pass outlives the process
//   StatesByHand   states that the caller saves and asks for
// all of which work on one ChainContext.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "chain/chain_context.h"
#include "chain/pass_executor.h"
#include "chain/pass_keeper.h"
#include "chain/pass_sizes.h"
#include "chain/states_by_hand.h"

namespace reprise::internal {

// States are given and returned by slot: a given one is the engine's, a returned one the caller's to take. When
// anything throws in a pass, the pass is over and everything is released.
class ChainEngine {
 public:
  ChainEngine(ChainLayers layers, bool tapes, ChainStates& states);

  // ---- settings ----

  [[nodiscard]] ChainSetup& setup() { return context_.setup; }
  [[nodiscard]] StateTiers& tiers() { return context_.tiers; }
  [[nodiscard]] Verification& verification() { return context_.verification; }
  void set_codec(const Codec&);
  void set_disk(DiskTier, std::optional<Bytes> transit);
  void set_observer(std::function<void(const ChainProgress&)>);
  [[nodiscard]] const std::function<void(const ChainProgress&)>& observer() const { return context_.observer; }
  [[nodiscard]] Verify verify() const { return context_.verify(); }
  // Runs all layers forward from the lent state and measures bytes and seconds.
  void measure();

  // ---- a pass whose loop is the engine's ----

  // Begin a pass or its backward. Throw ChainError if that is not possible now. What follows runs all of it.
  void begin_forward(Id first);
  void begin_forward_until();
  [[nodiscard]] Id forward(Id input);
  [[nodiscard]] Id forward_until(Id input, const std::function<bool(Id position, Id state)>& done);
  void begin_backward();
  void backward();
  // Looks for a pass that was kept, and makes the next forward go on with it.
  [[nodiscard]] ChainResume resume(std::uint64_t fingerprint);

  // ---- a pass whose loop is the caller's ----

  // Run one layer, forward from the lent state. `pass` is the number of the pass. If it is 0, forward begins a new
  // pass, and backward takes the one that is open. Set to 0 when backward is over.
  [[nodiscard]] Id forward_layer(std::uint64_t& pass, std::optional<double> cost);
  void begin_backward_layer(std::uint64_t pass);
  void backward_layer(std::uint64_t& pass);

  // ---- besides passes ----

  [[nodiscard]] StatesByHand& states_by_hand() { return by_hand_; }
  // Ends the pass, and removes everything that is stored or kept.
  void clear();
  [[nodiscard]] ChainStatistics statistics() const { return context_.account.statistics_now(); }
  [[nodiscard]] const Plan& plan() const;
  [[nodiscard]] Trace trace() const;

 private:
  class PassGuard;

  void begin(ChainPass::LoopOwner, Id first);
  void open_part(Id input, Id first, Id end);
  void forward_part(Id input);
  [[nodiscard]] bool forward_resumed(Id input);
  void forward_from_kept(Id from, Id end);
  void remake_part_before();
  void release() noexcept;

  void require_known(bool known, const char* what) const;
  void require_pass(std::uint64_t pass) const;
  void require_forward() const;
  [[noreturn]] void fail_backward() const;
  [[nodiscard]] bool has_run_all() const { return layers().known() && pass_.position == context_.part_size(); }
  [[nodiscard]] const ChainLayers& layers() const { return context_.layers(); }

  ChainContext context_;
  ChainPass& pass_;
  PassSizes sizes_;
  PassKeeper keeper_;
  StatesByHand by_hand_;
  PassExecutor executor_;
};

}  // namespace reprise::internal
