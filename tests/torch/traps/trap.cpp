#include "torch/traps/trap.h"

#include <ATen/ThreadLocalState.h>

#include <cstring>
#include <iostream>
#include <optional>
#include <regex>
#include <sstream>

#include "torch/here.h"
#include "torch/traps/company.h"

namespace reprise::testing {
using namespace internal;

// ---- what traps are made of ----

torch::nn::Sequential layers(std::int64_t width) {
  torch::nn::Sequential all;
  for (int i = 0; i < 4; ++i) {
    all->push_back(torch::nn::Linear(width, width));
    all->push_back(torch::nn::Tanh());
    all->push_back(torch::nn::GELU());
  }
  return all;
}

torch::nn::Sequential image_layers(std::int64_t channels) {
  torch::nn::Sequential all;
  for (int i = 0; i < 4; ++i) {
    all->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, channels, 3).padding(1)));
    all->push_back(torch::nn::Tanh());
    all->push_back(torch::nn::GELU());
  }
  return all;
}

torch::nn::Sequential small_model() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Linear(32, 64), nn::Dropout(0.3), nn::Tanh(), nn::Linear(64, 64), nn::GELU(),
                        nn::Linear(64, 64), nn::Tanh(), nn::Dropout(0.1), nn::Linear(64, 64), nn::GELU(),
                        nn::Linear(64, 1));
}

// ---- what traps give back ----

Tensors gradients(const torch::nn::Module& module, Tensors more) {
  for (const at::Tensor& parameter : module.parameters()) more.push_back(parameter.grad());
  for (const at::Tensor& buffer : module.buffers()) more.push_back(buffer);
  return more;
}

Tensors parameters(const torch::nn::Module& module, Tensors more) {
  for (const at::Tensor& parameter : module.parameters()) more.push_back(parameter.detach());
  for (const at::Tensor& buffer : module.buffers()) more.push_back(buffer);
  return more;
}

Snapshot snapshot(const at::Tensor& given) {
  if (!given.defined()) return {};
  at::NoGradGuard no_grad;
  at::Tensor tensor = given.detach();
  std::ostringstream kind;
  kind << tensor.scalar_type() << " " << tensor.layout() << " " << tensor.sizes();
  if (tensor.layout() != at::kStrided) {
    tensor = tensor.to_dense();
  } else {
    kind << " strides " << tensor.strides();
  }
  if (tensor.is_complex()) tensor = at::view_as_real(tensor.resolve_conj());
  tensor = tensor.resolve_neg().contiguous().cpu();
  std::string bits(tensor.nbytes(), '\0');
  if (!bits.empty()) std::memcpy(bits.data(), tensor.const_data_ptr(), bits.size());
  return {true, kind.str(), std::move(bits)};
}

std::vector<Snapshot> snapshots(const Tensors& tensors) {
  std::vector<Snapshot> all;
  all.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) all.push_back(snapshot(tensor));
  return all;
}

Snapshot generator_snapshot() {
  Snapshot all = snapshot(default_generator_here().get_state());
  all.kind = "generator";
  return all;
}

std::string difference(const std::vector<Snapshot>& expected, const std::vector<Snapshot>& actual) {
  std::ostringstream why;
  for (std::size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    const Snapshot &one = expected[i], &other = actual[i];
    if (one == other) continue;
    why << "result " << i << " (" << (one.defined ? one.kind : "undefined") << ") ";
    if (one.defined != other.defined || one.kind != other.kind) {
      why << "is " << (other.defined ? other.kind : "undefined");
    } else {
      std::size_t at = 0;
      while (one.bits[at] == other.bits[at]) ++at;
      why << "differs first at byte " << at << " of " << one.bits.size();
    }
    return why.str();
  }
  if (expected.size() != actual.size()) why << actual.size() << " results instead of " << expected.size();
  return why.str();
}

std::string text_of(const std::exception& error) {
  const auto* of_libtorch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_libtorch ? of_libtorch->what_without_backtrace() : error.what();
  return std::regex_replace(text, std::regex(", which is output \\d+ of \\w+,"), "");
}

// ---- running them ----

namespace {

// LibTorch logs to std::cerr. Sanitizers do not: what they say is seen.
class Log {
 public:
  Log() : before_(std::cerr.rdbuf(text_.rdbuf())) {}
  ~Log() { std::cerr.rdbuf(before_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

// The snapshots are taken outside of the step: their copies are not the trap's.
void take(Outcome& outcome, const Tensors& results) {
  for (Snapshot& one : snapshots(results)) outcome.results.push_back(std::move(one));
  outcome.results.push_back(generator_snapshot());
}

// What a regime does around the steps.
struct Around {
  std::function<std::optional<Step>()> open = [] { return std::nullopt; };  // a step, or nothing
  std::function<void(Outcome&)> limit = [](Outcome&) {};                    // the model is there, and the level known
  std::function<void(Outcome&)> closed = [](Outcome&) {};
};

void run_steps(const Trap& trap, const Regime& regime, const Around& around, Outcome& outcome) {
  const Bytes before = meter_here().live();
  std::optional<Work> work;
  if (!regime.build_inside) work = trap.make();
  outcome.level = meter_here().live();
  around.limit(outcome);
  const auto allocations = meter_here().allocations();
  meter_here().fail_after(regime.fail_after);
  for (int i = 0; i < regime.steps; ++i) {
    Tensors results;
    {
      meter_here().mark_peak();
      std::optional<Step> step = around.open();
      const Present present(regime.company);
      try {
        if (!work) work = trap.make();
        results = work->step();
      } catch (...) {
        outcome.peak = std::max(outcome.peak, meter_here().peak());
        throw;
      }
      outcome.peak = std::max(outcome.peak, meter_here().peak());
    }
    take(outcome, results);
    if (work->after) {
      {
        const Present present(regime.company);
        results = work->after();
      }
      take(outcome, results);
    }
    outcome.allocations = static_cast<std::int64_t>(meter_here().allocations() - allocations);
    outcome.kept = meter_here().live() - before;
    outcome.keeps_graph = work->keeps_graph;
    around.closed(outcome);
  }
}

Outcome run_steps(const Trap& trap, Regime regime, const Around& around) {
  if (regime.steps == 0) regime.steps = trap.steps;
  Outcome outcome;
  torch::manual_seed(3);
  const Bytes before = meter_here().live();
  const int threads = at::get_num_threads();
  const Log log;
  try {
    const at::ThreadLocalStateGuard settings{at::ThreadLocalState()};  // as before, wherever it is interrupted
    run_steps(trap, regime, around, outcome);
  } catch (const BudgetError& error) {
    outcome.infeasible = true;
    outcome.error = text_of(error);
  } catch (const std::exception& error) {
    outcome.error = text_of(error);
    // The interpreter of TorchScript puts what operators throw into an error of its own.
    outcome.infeasible = outcome.error.find("TorchScript interpreter") != std::string::npos &&
                         outcome.error.find("[budget] ") != std::string::npos;
  }
  meter_here().fail_after(-1);
  at::set_num_threads(threads);
  // An engine that was interrupted has unfinished tasks, with gradients, until the next backward of the thread.
  if (!outcome.error.empty()) {
    settle_here();
    torch::ones({1}, torch::requires_grad()).backward();
  }
  outcome.leaked = meter_here().live() - before;
  outcome.complaints = log.text();
  return outcome;
}

}  // namespace

Outcome run_plain(const Trap& trap, int steps) {
  return run_steps(trap, {.steps = steps}, {});
}

Outcome run(const Trap& trap, const Regime& regime, const Outcome& plain, Session& session) {
  Around around;
  around.open = [&] { return std::optional<Step>(session.step()); };
  around.limit = [&](Outcome& outcome) {
    if (regime.share == 0) return;
    const auto activations = static_cast<double>(plain.peak - plain.level);
    outcome.budget = outcome.level + static_cast<Bytes>(regime.share * activations);
    if (regime.company) outcome.budget += regime.company->needs();
    session.budget(outcome.budget);
  };
  around.closed = [&](Outcome& outcome) {
    session.wait_for_plan();
    outcome.summary = session.summary();
  };
  return run_steps(trap, regime, around);
}

Outcome run(const Trap& trap, const Regime& regime, const Outcome& plain) {
  Session session(regime.options);
  return run(trap, regime, plain, session);
}

}  // namespace reprise::testing
