// The actions of one pass through a chain. They are known from the start, or as far as decisions have been made.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reprise/chain/form.h"
#include "reprise/chain/schedule.h"
#include "reprise/trace/plan.h"

namespace reprise {

namespace internal {
class StepWriter;
}

// A plan, with the facts that its executor would have to look ahead for.
struct ChainScript {
  Plan plan;
  std::vector<char> last_get;   // by action: a get after which the copy need not stay
  std::vector<Id> disk_states;  // of all gets from the disk, in order
  // Throws BadOption with the interpreter's sentence if the plan is not valid for this chain.
  ChainScript(const ChainForm&, Plan);
};

class ChainPass {
 public:
  // Makes a pass that follows a script.
  explicit ChainPass(std::shared_ptr<const ChainScript>);
  // Makes a pass that decides as it goes.
  ChainPass(std::unique_ptr<ChainDecisions>, const ChainForm&);
  ~ChainPass();
  ChainPass(ChainPass&&) noexcept;
  ChainPass& operator=(ChainPass&&) noexcept;

  [[nodiscard]] const std::vector<Action>& actions() const { return *actions_; }
  // Adds the actions up to the next layer's forward. Does nothing if all actions are there.
  void prepare_forward();
  // Records that the prepared layer has run, at this cost.
  void ran(double cost);
  // Ends forward: everything is known from now on. The form has all layers.
  void turn(const ChainForm&);

  [[nodiscard]] bool is_last_get(std::size_t action) const;
  // Returns the next states that are wanted from the disk, after the first `had` of them.
  [[nodiscard]] std::span<const Id> wanted_from_disk(std::size_t had, std::size_t count) const;
  // Returns the plan, which is complete once forward is over. Null before that, if the pass decides as it goes.
  [[nodiscard]] const Plan* plan() const { return script_ ? &script_->plan : nullptr; }

 private:
  std::shared_ptr<const ChainScript> script_;
  std::unique_ptr<ChainDecisions> decisions_;
  std::unique_ptr<internal::StepWriter> writer_;
  ChainDecisions::Decision pending_{true, std::nullopt};  // about the state that was reached last
  Id reached_ = 0;
  const std::vector<Action>* actions_;
};

}  // namespace reprise
