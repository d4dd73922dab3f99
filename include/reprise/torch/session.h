// A session: training inside a byte budget.
//
//   reprise::Session session({.budget = 512_MiB});
//   for (auto& batch : *loader) {
//     auto step = session.step();   // everything below runs inside the budget
//     ...forward, backward, optimizer...
//   }
//   std::cout << session.summary();
//
// While a step is open, the operators of its thread are recorded. What autograd saves may be forgotten, and is replayed
// when backward asks for it: the same bits, from the same operators, without running the user's functions again.
//
// The budget counts all live bytes of LibTorch's CPU allocator in the process: parameters, gradients and optimizer
// state included, of all threads. It is in force while any step is open, and the smallest budget of the open steps
// counts. Every allocation is checked before it happens; when it does not fit, values are forgotten, and when nothing
// is left to forget the allocating thread gets a BudgetError. Between steps nothing is limited.
#pragma once

#include <chrono>
#include <filesystem>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "reprise/report/summary.h"
#include "reprise/torch/errors.h"
#include "reprise/torch/policy.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}

namespace reprise {

namespace internal {
class SessionState;
}  // namespace internal

// A budget that limits nothing.
inline constexpr Bytes no_limit = std::numeric_limits<Bytes>::max();

inline namespace literals {
constexpr Bytes operator""_KiB(unsigned long long n) {
  return static_cast<Bytes>(n) << 10;
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return static_cast<Bytes>(n) << 20;
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return static_cast<Bytes>(n) << 30;
}
}  // namespace literals

// This share (0 to 1) of the memory this process may use: the limit of its control group, or else all of the
// machine's. Throws BadOption for a share outside.
[[nodiscard]] Bytes fraction_of_memory(double share);

// When a value that was rebuilt is compared, bit by bit, with what was forgotten.
enum class Verify {
  never,       // trust the recipes: nothing is compared
  first_time,  // the first time each recipe of each trace is used; costs one pass over what is forgotten then
  always,      // every time: finds writes behind LibTorch's back in any step, at a few percent of the step
};

struct SessionOptions {
  // Live bytes never pass it while a step is open. `no_limit`: nothing is forgotten; steps are measured, and recorded
  // until their trace and its costs are known, then every 16th.
  // Zero: every allocation in a step is a BudgetError. Negative: BadOption.
  Bytes budget = no_limit;

  // Less: faster first steps. More: writes through raw pointers are found in every step.
  Verify verify = Verify::first_time;

  // Pack masks and indices without loss (two-valued masks to bits, small integers to one or two bytes) instead of
  // forgetting them. Off: they are kept or replayed like everything else.
  bool pack = true;

  // How long the planner may think about each new trace, on a thread of its own. More: cheaper plans. Zero: no plans,
  // the online policy rules every step.
  std::chrono::milliseconds planning_time = std::chrono::seconds(5);

  // A folder for plans: read when a session starts, written when one is made, so that the next run of the program
  // follows its plan from the second step on. A plan that does not fit the recorded trace and budget is ignored. Empty:
  // plans are not kept.
  std::filesystem::path plans = {};

  // What is to be kept, forgotten or packed by operator; none: the planner decides everything. See policy.h.
  // Without a budget nothing is forgotten, whatever it says.
  Policy policy = {};

  // Forget every value that can be rebuilt as soon as it is saved, and rebuild all of it from the leaves, even what is
  // still alive. Slow, and the strictest check there is that a model's recipes are exact. No plans are followed.
  bool forget_everything = false;

  // Names the session in summaries and errors.
  std::string name = "session";
};

// While it lives, its session records this thread and the budget is in force. Steps of one thread do not overlap: a
// second one on the same thread is a BadOption. It is closed on the thread that opened it.
class [[nodiscard]] Step {
 public:
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  ~Step();
  // Ends the step before the object goes out of scope.
  void close() noexcept;

 private:
  friend class Session;
  explicit Step(std::shared_ptr<internal::SessionState>);
  std::shared_ptr<internal::SessionState> state_;
};

class Session {
 public:
  // Throws BadOption for an option it cannot have, and when another library's allocator has taken LibTorch's place for
  // one and a budget is asked for.
  explicit Session(SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  [[nodiscard]] Step step();

  // From the next step on. Traces that are known are planned for it at once: after `wait_for_plan` the next step can
  // follow a plan, and plans reach lower than the online policy does.
  void budget(Bytes);
  [[nodiscard]] Bytes budget() const;

  // For policies: an operator belongs to the module of this model whose parameter it reads, by its name in
  // `named_parameters()`. From the next new trace on.
  void name(const torch::nn::Module& model);

  // Off: steps run plainly, nothing is recorded or limited. From the next step on.
  void enabled(bool);
  [[nodiscard]] bool enabled() const;

  [[nodiscard]] Summary summary() const;

  // Until no planning is under way.
  void wait_for_plan();

  // The trace of the last complete step that was recorded: of its longest stretch from the first operator to the end of
  // backward. `write_trace` saves it for the `reprise` command.
  [[nodiscard]] std::optional<Trace> trace() const;

  // The plan for that trace, if there is one.
  [[nodiscard]] std::optional<Plan> plan() const;

  // Follow this plan where a step's trace is one it is valid for, instead of planning. Throws BadInput if it is not
  // valid for the trace of the last complete step.
  void use(Plan);

  // "I wrote into this tensor behind LibTorch's back" (through a raw pointer): what was recorded about its contents no
  // longer holds. Call it after the write, on the thread of the step.
  void touched(const at::Tensor&);

 private:
  std::shared_ptr<internal::SessionState> state_;
};

}  // namespace reprise
