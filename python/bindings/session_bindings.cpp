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
#include "torch/api/named_policies.h"
#include "torch/api/option_table.h"
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
  // A step that failed does not measure what shares of a peak are shares of.
  void close(bool failed) {
    const std::scoped_lock lock(mutex_);
    if (step_ && failed) internal::SessionInside::of(session).step_failed();
    step_.reset();
  }

  Session session;

 private:
  std::mutex mutex_;
  std::optional<Step> step_;
  std::thread::id opened_by_;
};

// The values of Session's keywords as text, and the rules of its policy.
std::unique_ptr<PythonSession> make_session(const std::map<std::string, std::string>& options,
                                            const std::vector<std::pair<std::string, std::string>>& policy) {
  internal::RunSettings settings;
  for (const internal::Option& option : internal::options_of_run) {
    const auto given = options.find(std::string(option.keyword));
    if (given == options.end()) continue;
    internal::set_option(settings, option, "[session] option " + given->first, given->second);
  }
  settings.session.policy = internal::policy_of(policy);
  const py::gil_scoped_release no_interpreter;
  return std::make_unique<PythonSession>(std::move(settings.session));
}

// As Ctrl-C expects it: a signal ends it.
void wait_for_plan(PythonSession& self) {
  std::uint64_t last = 0;
  {
    const py::gil_scoped_release no_interpreter;
    const internal::Arbiter lock;
    last = internal::SessionInside::of(self.session).last_planning_job();
  }
  while (true) {
    {
      const py::gil_scoped_release no_interpreter;
      if (internal::Planning::of_process().wait(last, std::chrono::milliseconds(50))) return;
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
      .def(py::init(&make_session), py::arg("options"), py::arg("policy"))
      .def("open", &PythonSession::open, NoInterpreter())
      .def("close", &PythonSession::close, py::arg("failed"), NoInterpreter())
      .def(
          "set_budget",
          [](PythonSession& self, const std::string& budget, const std::string& device) {
            self.session.budget(device, Budget(budget));
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
