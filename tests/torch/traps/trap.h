// Traps: pieces of training in which an evicted value is easily recomputed wrongly.
//
// A trap is run plainly, without Reprise, and then in every regime; whatever it computes has to be the same bits. Each
// regime is a suite of its own, the trap's name is the test's: `ForcedTrap.DropoutMasks`.
//
//   PlainTrap         without a session: the trap itself is deterministic, and throws if it is said to
//   RecordedTrap      a session without a limit
//   ForcedTrap        everything is evicted at once and recomputed from the leaves, even if it is still alive
//   ForcedBuildTrap   the same, and the model is built inside the step too
//   TightTrap         under eight budgets, with packing and without; a BudgetError is allowed, but counted
//   PlannedTrap       several steps under one budget, planned in between
//   DiskTrap          the same under two budgets with a disk, to which everything goes that would be evicted
//   InterruptedTrap   in one session, over and over: an allocation fails somewhere in the steps, everything is let go;
//                     then the steps undisturbed. Everything evicted, and under a budget with plans
//   CompanyTrap       beside a thread that draws, allocates and trains. Everything evicted, and under a budget
//
// They run at the device that is here (here.h). In all of them: results, generator and errors as in the plain run, live
// bytes within the budget, nothing leaked.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/torch/session.h"

namespace reprise::testing {

using Tensors = std::vector<at::Tensor>;
class Company;

// What a trap does, over and over, with the model and the data that it holds.
struct Work {
  std::function<Tensors()> step;   // inside a step; what it gives is compared
  std::function<Tensors()> after;  // after each step, outside of any; may be empty
  // Whether a graph that has not been through backward may outlive the last step: then live bytes differ, as values
  // may be evicted, or held for their recipes. The same where results share memory with what was saved.
  bool keeps_graph = false;

  template <class Step>
  requires std::is_invocable_r_v<Tensors, Step> Work(Step step_) : step(std::move(step_)) {}
  Work(std::function<Tensors()> step_, std::function<Tensors()> after_)
      : step(std::move(step_)), after(std::move(after_)) {}
};

struct Trap {
  std::string name;
  std::function<Work()> make;      // builds model and data; the generator is seeded before
  int steps = 1;                   // of the same work
  bool throws = false;             // plainly; then everywhere, with the same text
  bool costly = false;             // not under eight budgets
  const char* cpu_only = nullptr;  // why it is no trap of an accelerator
};

// Registers a test for every trap in every regime. For variables of a file: tests are there before main.
class Traps {
 public:
  explicit Traps(const std::vector<Trap>& traps);
};

// ---- what traps are made of ----

// Layers to put in front of a trap, so that there is something to evict beside it: of rows, and of images.
torch::nn::Sequential layers(std::int64_t width);
torch::nn::Sequential image_layers(std::int64_t channels);
// A whole model, from rows of 32 to one number each, that draws.
torch::nn::Sequential small_model();

// ---- what traps give back ----

// Gradients and buffers of a module, in order; `more` in front.
Tensors gradients(const torch::nn::Module&, Tensors more = {});
// Parameters and buffers, as after an optimizer's step.
Tensors parameters(const torch::nn::Module&, Tensors more = {});

// A tensor's bits, in memory that is not LibTorch's.
struct Snapshot {
  bool defined = false;
  std::string kind;  // type, sizes and strides
  std::string bits;  // of a contiguous copy
  bool operator==(const Snapshot&) const = default;
};
Snapshot snapshot(const at::Tensor&);
std::vector<Snapshot> snapshots(const Tensors&);
// Of the default generator that is here.
Snapshot generator_snapshot();
// Empty if they are the same; otherwise a sentence about the first difference.
std::string difference(const std::vector<Snapshot>& expected, const std::vector<Snapshot>& actual);

// ---- running them ----

// How a trap is run in a session.
struct Regime {
  SessionOptions options = {};
  double share = 0;           // if not zero, the budget is level + share * (plain peak - level), and what company needs
  int steps = 0;              // zero: the trap's own
  bool build_inside = false;  // the model is built inside the first step
  std::int64_t fail_after = -1;  // so many allocations of the steps one fails; -1: none
  Company* company = nullptr;    // is there while the steps run, and only then
};

struct Outcome {
  std::vector<Snapshot> results;  // of all steps, each followed by the generator
  std::string error;              // the text of what was thrown
  bool infeasible = false;        // a BudgetError was thrown: `results` are those before
  Bytes level = 0;                // live when the first step began
  Bytes peak = 0;                 // in any step
  Bytes budget = no_limit;
  Bytes kept = 0;                // live after the last step: model, data and results
  bool keeps_graph = false;      // as the work says
  Bytes leaked = 0;              // live after everything was destroyed
  std::int64_t allocations = 0;  // in the steps
  Summary summary;               // after the last step
  std::string complaints;        // what LibTorch logged: it swallows what a callback of ours throws
};

Outcome run_plain(const Trap&, int steps = 0);
Outcome run(const Trap&, const Regime&, const Outcome& plain);
// In a session that was there before: the regime's options are not looked at.
Outcome run(const Trap&, const Regime&, const Outcome& plain, Session&);

// Without what is said about where it was thrown, and which node's output a tensor was: a saved tensor's hook is not
// told.
std::string text_of(const std::exception&);

}  // namespace reprise::testing
