// Sessions and their steps. Texts and numbers cross as JSON where the library has that already.
#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "bindings_of.h"
#include "dicts.h"
#include "reprise/report/summary.h"
#include "reprise/torch/largest.h"
#include "reprise/torch/session.h"
#include "reprise/torch/session_report.h"
#include "torch/api/find_largest.h"
#include "torch/api/measure_in_copy.h"
#include "torch/api/run_step.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/counted_device.h"
#include "torch/memory/meter.h"
#include "torch/plans/planning_queue.h"
#include "torch/session/session_state.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

using NoInterpreter = py::call_guard<py::gil_scoped_release>;

// A policy by names, which needs no Python while a step runs: those of policy::by_names and, for all others, the
// policies that the library has.
Policy policy_of(const std::vector<std::pair<std::string, std::string>>& rules) {
  const std::map<std::string, Choice> choices{
      {"keep", Choice::keep}, {"evict", Choice::evict}, {"pack", Choice::pack}, {"automatic", Choice::automatic}};
  std::vector<std::pair<std::string, Choice>> named;
  std::vector<Policy> policies;
  for (const auto& [name, choice] : rules) {
    if (name == "keep_products") {
      policies.push_back(policy::keep_products());
    } else if (name == "pack_random") {
      policies.push_back(policy::pack_random());
    } else if (name == "evict_cheap") {
      policies.push_back(policy::evict_cheap());
    } else if (name.find("::") == std::string::npos && !name.ends_with("*")) {
      throw BadOption("[session] option policy has '" + name +
                      "': it must be an operator ('aten::mm'), modules ('encoder.*'), or one of keep_products, "
                      "pack_random, evict_cheap");
    } else if (const auto found = choices.find(choice); found != choices.end()) {
      named.emplace_back(name, found->second);
    } else {
      throw BadOption("[session] option policy has '" + choice + "' for '" + name +
                      "': it must be keep, evict, pack or decide");
    }
  }
  return policy::by_names(named, policy::first_of(std::move(policies)));
}

// A session, and its open step: Python has no scopes that end.
class PythonSession {
 public:
  explicit PythonSession(SessionOptions options) : session(std::move(options)) {}
  // Not with the interpreter's lock: it may wait for planning to be given up.
  ~PythonSession() {
    const py::gil_scoped_release no_interpreter;
    step_.reset();
  }

  void open() {
    const std::scoped_lock lock(mutex_);
    if (step_ && opened_by_ != std::this_thread::get_id()) {
      throw BadOption(
          "[session] step: another thread has an open step of this session; use one session for each thread");
    }
    step_.emplace(session.step());
    opened_by_ = std::this_thread::get_id();
  }
  void close() {
    const std::scoped_lock lock(mutex_);
    step_.reset();
  }

  Session session;

 private:
  std::mutex mutex_;
  std::optional<Step> step_;
  std::thread::id opened_by_;
};

std::unique_ptr<PythonSession> make_session(std::optional<Bytes> budget, const std::string& device,
                                            const NamedBudgets& budgets, const std::string& disk,
                                            std::optional<Bytes> disk_bytes, Bytes host, const std::string& verify,
                                            bool pack, double planning_share, double planning_seconds,
                                            const std::string& plans,
                                            const std::vector<std::pair<std::string, std::string>>& policy,
                                            bool evict_everything, const std::string& name) {
  if (!(planning_seconds >= 0 && planning_seconds < 1e9)) {
    throw BadOption("[session] option planning_seconds is " + std::to_string(planning_seconds) +
                    ": it must be from 0 to 1e9");
  }
  SessionOptions options;
  options.budget = budget.value_or(no_limit);
  options.device = device;
  options.budgets = device_budgets(budgets);
  options.disk.folder = disk;
  if (disk_bytes) options.disk.bytes = *disk_bytes;
  options.host.bytes = host;
  options.verify = verify_of("session", verify);
  options.pack = pack;
  options.planning_share = planning_share;
  options.planning_time = std::chrono::milliseconds(static_cast<std::int64_t>(planning_seconds * 1000));
  options.plans = plans;
  if (!policy.empty()) options.policy = policy_of(policy);
  options.evict_everything = evict_everything;
  options.name = name;
  const py::gil_scoped_release no_interpreter;
  return std::make_unique<PythonSession>(std::move(options));
}

// As Ctrl-C expects it: a signal ends it.
void wait_for_plan(PythonSession&) {
  while (true) {
    {
      const py::gil_scoped_release no_interpreter;
      if (internal::Planning::of_process().wait(std::chrono::milliseconds(50))) return;
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

void label_modules(PythonSession& self, const std::map<std::string, at::Tensor>& parameters) {
  const py::gil_scoped_release no_interpreter;
  self.session.label_modules({parameters.begin(), parameters.end()});
}

// The copy of the process is Python's, too.
pid_t copy_with_interpreter() {
  PyOS_BeforeFork();
  const pid_t copy = fork();
  if (copy == 0) {
    PyOS_AfterFork_Child();
  } else {
    PyOS_AfterFork_Parent();
  }
  return copy;
}

// `keeps_budget` runs a step of this session. Ctrl-C is heard while it plans.
Largest largest_of(PythonSession& self, std::vector<std::int64_t> sizes, std::optional<std::int64_t> at_most, int steps,
                   double seconds, const std::function<bool(std::int64_t)>& keeps_budget) {
  LargestOptions options;
  options.sizes = std::move(sizes);
  options.at_most = at_most;
  options.steps = steps;
  options.time_limit = std::chrono::duration<double>(seconds);
  options.progress = [](double, std::int64_t) {
    const py::gil_scoped_acquire interpreter;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  };
  const py::gil_scoped_release no_interpreter;
  return internal::find_largest(self.session, options, [&](std::int64_t size) {
    const py::gil_scoped_acquire interpreter;
    return keeps_budget(size);
  });
}

// `step` runs `train` in a step of this session. An error that is not one of the budget comes through as it is. The
// functions take the interpreter themselves.
void run_step_of(PythonSession& self, const std::function<void()>& step, const std::function<void()>& train) {
  const py::gil_scoped_release no_interpreter;
  const auto run = [&] {
    try {
      step();
    } catch (py::error_already_set& error) {
      const py::gil_scoped_acquire interpreter;
      rethrow_own_error(error);
      throw;
    }
  };
  const auto copy = [] {
    const py::gil_scoped_acquire interpreter;
    return copy_with_interpreter();
  };
  internal::run_step(internal::SessionInside::of(self.session), run, train, copy);
}

}  // namespace

void add_sessions(py::module_& module) {
  py::class_<PythonSession>(module, "Session")
      .def(py::init(&make_session), py::arg("budget"), py::arg("device"), py::arg("budgets"), py::arg("disk"),
           py::arg("disk_bytes"), py::arg("host"), py::arg("verify"), py::arg("pack"), py::arg("planning_share"),
           py::arg("planning_seconds"), py::arg("plans"), py::arg("policy"), py::arg("evict_everything"),
           py::arg("name"))
      .def("open", &PythonSession::open, NoInterpreter())
      .def("close", &PythonSession::close, NoInterpreter())
      .def(
          "set_budget",
          [](PythonSession& self, std::optional<Bytes> budget, const std::string& device) {
            self.session.budget(device, budget.value_or(no_limit));
          },
          py::arg("budget"), py::arg("device"), NoInterpreter())
      .def(
          "get_budget",
          [](const PythonSession& self) {
            const Bytes budget = self.session.budget();
            return budget == no_limit ? std::nullopt : std::optional(budget);
          },
          NoInterpreter())
      .def(
          "set_enabled", [](PythonSession& self, bool on) { self.session.enabled(on); }, py::arg("on"), NoInterpreter())
      .def(
          "get_enabled", [](const PythonSession& self) { return self.session.enabled(); }, NoInterpreter())
      .def(
          "summary_text", [](const PythonSession& self) { return to_text(self.session.summary()); }, NoInterpreter())
      .def(
          "summary_json", [](const PythonSession& self) { return json_line(self.session.summary()); }, NoInterpreter())
      .def("wait_for_plan", &wait_for_plan)
      .def(
          "trace", [](const PythonSession& self) { return self.session.trace(); }, NoInterpreter())
      .def(
          "plan", [](const PythonSession& self) { return self.session.plan(); }, NoInterpreter())
      .def(
          "follow", [](PythonSession& self, const Plan& plan) { self.session.follow(plan); }, py::arg("plan"),
          NoInterpreter())
      .def("largest", &largest_of, py::arg("sizes"), py::arg("at_most"), py::arg("steps"), py::arg("seconds"),
           py::arg("keeps_budget"))
      .def("run_step", &run_step_of, py::arg("step"), py::arg("train"))
      .def("label_modules", &label_modules, py::arg("parameters"))
      .def(
          "touched", [](PythonSession& self, const at::Tensor& tensor) { self.session.touched(tensor); },
          py::arg("tensor"), NoInterpreter())
      .def(
          "write_report",
          [](PythonSession& self, const std::string& path, const std::string& title, double seconds) {
            write_report(path, self.session, {.title = title, .time_limit = std::chrono::duration<double>(seconds)});
          },
          py::arg("path"), py::arg("title"), py::arg("seconds"), NoInterpreter());

  py::class_<Largest>(module, "Largest")
      .def_readonly("size", &Largest::size)
      .def_readonly("peak", &Largest::peak)
      .def_readonly("seconds", &Largest::seconds)
      .def_readonly("refused", &Largest::refused)
      .def_readonly("fit", &Largest::fit)
      .def("text", [](const Largest& largest) { return to_text(largest); });

  py::class_<Measurement>(module, "Measurement")
      .def_readonly("peak", &Measurement::peak)
      .def_readonly("seconds", &Measurement::seconds)
      .def_readonly("trace", &Measurement::trace);
  module.def(
      "measure_in_copy",
      [](const std::function<void()>& train) { return internal::measure_in_copy(train, &copy_with_interpreter); },
      py::arg("train"));

  module.def("accelerators_in_use", [] {
    std::vector<std::string> all;
    for (const c10::Device device : internal::accelerators_in_use()) all.push_back(device.str());
    return all;
  });
  module.def("live_bytes", &internal::meter::live);
  module.def("peak_bytes", &internal::meter::peak);
  module.def("mark_peak", &internal::meter::mark_peak);
  module.def("keep_all_pages", &internal::meter::keep_all_pages);
  module.def("resident_bytes", &internal::meter::resident);
  module.def(
      "fraction_of_memory", [](double share) { return fraction_of_memory(share); }, py::arg("share"));
}

}  // namespace reprise::python
