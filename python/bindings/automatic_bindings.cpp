// Steps that are found, in programs that do not know of Reprise: `python -m reprise run`.
#include <pybind11/stl.h>

#include <chrono>
#include <optional>
#include <string>

#include "bindings_of.h"
#include "dicts.h"
#include "reprise/report/summary.h"
#include "torch/hooks/automatic.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

// The summary as text and as JSON, and the trace.
std::optional<std::tuple<std::string, std::string, std::optional<Trace>>> found() {
  const auto outcome = internal::automatic::outcome();
  if (!outcome) return std::nullopt;
  return std::tuple(to_text(outcome->summary), json_line(outcome->summary), outcome->trace);
}

void find_steps(std::optional<Bytes> budget, const std::string& device, const NamedBudgets& budgets,
                const std::string& disk, std::optional<Bytes> disk_bytes, Bytes host, double planning_share,
                double planning_seconds, const std::string& plans) {
  SessionOptions options;
  options.budget = budget.value_or(no_limit);
  options.device = device;
  options.budgets = device_budgets(budgets);
  options.disk.folder = disk;
  if (disk_bytes) options.disk.bytes = *disk_bytes;
  options.host.bytes = host;
  options.planning_share = planning_share;
  options.planning_time = std::chrono::milliseconds(static_cast<std::int64_t>(planning_seconds * 1000));
  options.plans = plans;
  options.name = "reprise run";
  internal::automatic::begin(options);
}

}  // namespace

void add_found_steps(py::module_& module) {
  using NoInterpreter = py::call_guard<py::gil_scoped_release>;
  module.def("find_steps", &find_steps, py::arg("budget"), py::arg("device"), py::arg("budgets"), py::arg("disk"),
             py::arg("disk_bytes"), py::arg("host"), py::arg("planning_share"), py::arg("planning_seconds"),
             py::arg("plans"), NoInterpreter());
  module.def("found", &found, NoInterpreter());
}

}  // namespace reprise::python
