// A session trains inside a byte budget.
//
//   reprise::Session session({.budget = 512_MiB});
//   for (auto& batch : *loader) {
//     auto step = session.step();   // everything below runs inside the budget
//     ...forward, backward, optimizer...
//   }
//   std::cout << session.summary();
//
// While a step is open, the operators of its thread are recorded. Tensors that autograd saves may be evicted, and are
// recomputed when backward asks for them: the same bits, from the same operators, without running the user's functions
// again.
//
// The budget counts all live bytes of LibTorch's allocator for a device (the CPU, or an accelerator) in the process, of
// all threads: parameters, gradients and optimizer state included. It is in force while any step is open, and the
// smallest budget of the open steps counts. Every allocation is checked before it happens. If it does not fit, values
// of that device are evicted; if nothing is left to evict, the allocating thread gets a BudgetError. Between steps
// nothing is limited.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/export.h"
#include "reprise/report/summary.h"
#include "reprise/torch/errors.h"
#include "reprise/torch/policy.h"
#include "reprise/trace/budget.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"
#include "reprise/trace/verify.h"

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}

namespace reprise {

// Declared in largest.h and measurement.h.
struct Largest;
struct LargestOptions;
struct Measurement;

namespace internal {
class SessionState;
struct SessionInside;
}  // namespace internal

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

// Returns this share of the memory that the process may use: of the limit of its control group, or else of the
// machine's memory. Throws BadOption unless the share is above 0 and at most 1.
[[nodiscard]] REPRISE_EXPORT Bytes fraction_of_memory(double share);

// A disk that a session offloads values to. When nothing else can be evicted, gradients of parameters wait there until
// backward is over. While a gradient is offloaded, `parameter.grad()` is undefined.
struct DiskOffload {
  // A folder on a local disk, which must exist. The session makes a folder of its own in it, for this user only,
  // removes it at the end, and removes what sessions of killed processes left there: see DiskTier. Empty: no disk.
  std::filesystem::path folder = {};
  // The most bytes of all files together. Negative: BadOption.
  Bytes bytes = largest_bytes;
};

// Pinned memory of the host that a session on an accelerator offloads values to, and gradients as to a disk.
struct HostOffload {
  // The most bytes of values there. Zero: none. Negative: BadOption.
  Bytes bytes = 0;
};

// The most bytes that may be live on one device while a step is open.
struct DeviceBudget {
  std::string device;  // LibTorch's name for it: "cpu", "cuda:0"; without a number, the current one
  Budget budget = {};  // no limit: its bytes are counted
};

struct SessionOptions {
  // ---- behaviour ----

  // The most bytes that may be live while a step is open: 512_MiB, "2GiB", or a share of what the program needs, as
  // "0.4x". A share is measured by two plain steps, because an optimizer's state comes with the first, and holds from
  // the third step on. No limit: nothing is evicted; steps are measured, and they are recorded until their trace and
  // its costs are known, then every 16th. Zero: every allocation in a step is a BudgetError. Negative: BadOption.
  Budget budget = {};

  // The device whose bytes the budget counts, and whose values are evicted and recomputed, by LibTorch's name for it:
  // "cuda:0"; without a number, the current one. Values on other devices are kept. On an accelerator there is no
  // packing, no disk (but `host`) and no `measure`, and backward runs on the thread that calls it: see docs/devices.md.
  // A device that does not exist, or whose bytes cannot be counted: BadOption. Empty: where the parameters are. That is
  // the CPU if no accelerator is in use when the first step begins, or if there is a disk; else the device of the first
  // leaf that requires a gradient and that an operator of a step reads, and nothing is limited before that. With a
  // budget, parameters on two devices, or on one whose bytes cannot be counted, are a BadOption, in the step that meets
  // them and in every later one.
  std::string device = {};

  // Budgets of several devices at once, instead of `budget` and `device`: values of each of them are evicted and
  // recomputed, and each budget holds. Plans are made for the bytes of the first, which is the one to name first if it
  // is the tightest; at the others, the online policy decides in every step. The same device twice, a negative budget,
  // or `budget` or `device` beside it: BadOption.
  std::vector<DeviceBudget> budgets = {};

  // When recomputed values are compared with evicted ones. Less often: faster first steps. More often: writes through
  // raw pointers are found in every step.
  Verify verify = Verify::first_time;

  // Packs masks and indices without loss (two-valued masks to bits, small integers to one or two bytes) instead of
  // evicting them. Off: they are kept or replayed like everything else.
  bool pack = true;

  // A disk that values may go to (be offloaded to) instead of being evicted, where that is cheaper by the speed that
  // was measured, or where there is no other way to keep to the budget. Files are checked when they are read; a value
  // whose file cannot be written or read is replayed. Bytes on their way are in the budget. Nothing: no disk.
  DiskOffload disk = {};

  // Memory of the host that values of an accelerator may go to (be offloaded to) instead of being evicted: of the
  // first accelerator that `device` or `budgets` names. The device copies them there and back on streams beside those
  // that compute, planned with its own times. If the CPU has a budget, these bytes are in it, too. A session without an
  // accelerator: BadOption.
  HostOffload host = {};

  // The CPU time that planning may take, on a thread of its own, as a share of the CPU time of all steps so far; a
  // session begins with a credit of 8 steps, at least 0.5 and at most 2 seconds, beside it. Within it, a trace is
  // planned if that can be expected to pay: for no longer than its plan saves in as many steps as have met the trace.
  // More: better plans sooner. Zero: no plans, and the online policy decides in every step. Infinite: every trace is
  // planned for `planning_time`, at once.
  double planning_share = 0.05;

  // The most time that the planner may spend on a plan. More: cheaper plans. Zero: no plans.
  std::chrono::milliseconds planning_time = std::chrono::seconds(5);

  // A folder for plans. Plans are read when a session starts and written when they are made, so that the next run of
  // the program follows its plan from the second step on, and evicts in the first step what plans for the same budget
  // evicted. A plan that does not fit the recorded trace and budget is ignored. Empty: plans are not kept.
  std::filesystem::path plans = {};

  // Chooses by operator what is kept, evicted or packed: see policy.h. Empty: the planner decides everything.
  // Without a budget nothing is evicted, whatever the policy returns.
  Policy policy = {};

  // ---- for tests and logs ----

  // Evicts every value that can be recomputed as soon as it is saved, and recomputes all of it from the leaves, even
  // values that are still alive. This is slow, and the strictest check that a model's recipes are exact. No plans are
  // followed.
  bool evict_everything = false;

  // The name of the session in summaries and errors.
  std::string name = "session";
};

// One open step. While it lives, its session records this thread, and the budget is in force. Steps of one thread do
// not overlap: opening a second one on the same thread throws BadOption. A step is closed on the thread that opened it.
class [[nodiscard]] REPRISE_EXPORT Step {
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
  int exceptions_ = 0;  // in flight when the step began: one more at its end, and the step has failed
};

class REPRISE_EXPORT Session {
 public:
  // Throws BadOption if an option is invalid, or if a budget is set while another library has replaced LibTorch's CPU
  // allocator.
  explicit Session(SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Opens a step on this thread. Throws BadOption if this thread has one open already.
  [[nodiscard]] Step step();

  // Runs a step with this function in it: forward, backward, optimizer. As `step()`, but a step that does not fit is
  // not given up at once. If it ends with a BudgetError, what it has changed is put back: contents of tensors that it
  // overwrote (as statistics of BatchNorm), gradients, and random generators. Then the function is run without its
  // memory, in a copy of the process (measurement.h has what that asks of it), planned, and run once more under the
  // plan. So a budget that only a plan can keep will do from the first step on.
  //
  // The function must do the same when it is called again: what it changes beside tensors, as a counter or the position
  // in a file, is not put back, so take the batch before. It is not called again if it has written a parameter by then,
  // or after a backward, because an optimizer may have begun; or if it has overwritten more than a sixteenth of the
  // budget, as gradients that are there already: the error says so, and the next step follows the plan. If no plan
  // keeps the budget, the error says which budget will do.
  //
  // Without plans (planning_time, planning_share, evict_everything), and on an accelerator, it is the same as
  // `step()`.
  void run(const std::function<void()>& train);

  // Sets the budget of the session's device, or of the first of several, from the next step on. Known traces are
  // planned for it at once: after `wait_for_plan` the next step can follow a plan, and plans reach lower than the
  // online policy. A share is measured again, by two plain steps.
  void budget(const Budget&);
  // Returns the bytes; no_limit as long as a share is being measured.
  [[nodiscard]] Bytes budget() const;
  // Sets the budget of one of the session's devices, by its name.
  void budget(const std::string& device, const Budget&);

  // Labels operators with the modules of this model, for policies and reports, from the next new trace on: an operator
  // belongs to the module whose parameter it reads, by the parameter's name in `named_parameters()`.
  void label_modules(const torch::nn::Module& model);
  // Labels operators by these parameters and their names ("encoder.layers.3.weight"), for a model of another kind.
  void label_modules(const std::vector<std::pair<std::string, at::Tensor>>& named_parameters);

  // Switches the session on or off from the next step on. Off: steps run plainly, nothing is recorded or limited.
  void enabled(bool);
  [[nodiscard]] bool enabled() const;

  // Returns the numbers of the last step and of all steps so far.
  [[nodiscard]] Summary summary() const;

  // Waits until the plans that this session has asked for are made, or given up. Plans are made one after the other, so
  // that those that other sessions asked for before are waited for as well; those that they ask for later are not.
  void wait_for_plan();

  // Returns the trace of the last complete step that was recorded: its longest stretch from an operator to the end of
  // backward, with the other bytes that were seen lately. `write_trace` saves it for `reprise`. Its bytes are those of
  // the first device; unless the CPU is the only one, its name says which that is.
  [[nodiscard]] std::optional<Trace> trace() const;

  // Returns the plan for that trace, if there is one. Other bytes may have outgrown it, as `simulate` says then: its
  // budget holds, because more is evicted beside it.
  [[nodiscard]] std::optional<Plan> plan() const;

  // Follows this plan, instead of planning, in steps whose trace it is valid for. Throws BadInput if it is not valid
  // for the trace of the last complete step.
  void follow(Plan);

  // Runs a step once without the memory that it needs, and returns its peak and its trace: see measurement.h.
  [[nodiscard]] Measurement measure(const std::function<void()>& train) const;

  // Finds the largest batch, or the longest sequences, that train inside the budget: see largest.h. `train` is a whole
  // step for this size, with forward and backward.
  [[nodiscard]] Largest largest(const LargestOptions&, const std::function<void(std::int64_t size)>& train);

  // Declares that the program wrote into this tensor through a raw pointer, which LibTorch does not see: what was
  // recorded about the tensor's contents no longer holds. Call it after the write, on the thread of the step.
  void touched(const at::Tensor&);

 private:
  friend struct internal::SessionInside;
  std::shared_ptr<internal::SessionState> state_;
};

}  // namespace reprise
