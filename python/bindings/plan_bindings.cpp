// Traces, plans, curves and fits. Python sees them as objects that it passes on, and as JSON, which is their file
// format.
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <string>

#include "bindings_of.h"
#include "interruptible.h"
#include "reprise/plan/curve.h"
#include "reprise/plan/fit.h"
#include "reprise/plan/planner.h"
#include "reprise/report/curve_views.h"
#include "reprise/report/fit_views.h"
#include "reprise/report/json.h"
#include "reprise/report/page.h"
#include "reprise/report/text.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"
#include "reprise/trace/files.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

using NoInterpreter = py::call_guard<py::gil_scoped_release>;

PlannerChoice planner_of(const std::string& name, std::optional<int> count) {
  if (name == "segments") return SegmentsPlanner{.count = count};
  if (name == "every") return EveryPlanner{.operators = count.value_or(4)};
  if (name == "revolve") return RevolvePlanner{.slots = count};
  if (name == "hrevolve") return HRevolvePlanner{.slots = count};
  if (count) throw BadOption("[plan] planner '" + name + "' has no option count");
  return name;
}

PlanResult make(const Trace& trace, Bytes budget, const std::string& planner, std::optional<int> count, double seconds,
                std::optional<std::uint64_t> moves, std::uint64_t seed, const std::optional<Plan>& start) {
  PlanOptions options;
  options.budget = budget;
  options.planner = planner_of(planner, count);
  options.time_limit = std::chrono::duration<double>(seconds);
  options.moves = moves;
  options.seed = seed;
  options.start = start;
  std::atomic<bool> cancel = false;
  options.cancel = &cancel;
  return interruptible([&] { return make_plan(trace, options); }, [&] { cancel = true; });
}

Curve curve_of(const Trace& trace, int points, double seconds, std::uint64_t seed) {
  CurveOptions options;
  options.points = points;
  options.time_limit = std::chrono::duration<double>(seconds);
  options.seed = seed;
  std::atomic<bool> cancel = false;
  options.cancel = &cancel;
  return interruptible([&] { return make_curve(trace, options); }, [&] { cancel = true; });
}

Fit fit_of(const std::vector<std::pair<std::int64_t, Trace>>& recorded, Bytes budget,
           const std::vector<std::int64_t>& wanted, std::optional<std::int64_t> at_most, double seconds) {
  std::vector<SizedTrace> traces;
  for (const auto& [size, trace] : recorded) traces.push_back({size, trace});
  const Growth growth(std::move(traces));
  FitOptions options;
  options.budget = budget;
  options.wanted = wanted;
  options.at_most = at_most;
  options.time_limit = std::chrono::duration<double>(seconds);
  std::atomic<bool> cancel = false;
  options.cancel = &cancel;
  return interruptible([&] { return make_fit(growth, options); }, [&] { cancel = true; });
}

std::optional<std::int64_t> size_at(const Fit& fit, std::optional<std::size_t> point) {
  if (!point) return std::nullopt;
  return fit.points[*point].size;
}

py::list points_of(const Fit& fit) {
  py::list points;
  for (const FitPoint& point : fit.points) {
    if (point.result.has_plan()) points.append(py::make_tuple(point.size, point.cost_per_sample()));
  }
  return points;
}

py::list points_of(const Curve& curve) {
  py::list points;
  for (const CurvePoint& point : curve.points) {
    if (point.result) points.append(py::make_tuple(point.budget, point.result->cost_ratio() - 1));
  }
  return points;
}

}  // namespace

void add_plans(py::module_& module) {
  py::class_<Trace>(module, "Trace")
      .def_property_readonly("name", [](const Trace& trace) { return trace.name; })
      .def_property_readonly("operators", [](const Trace& trace) { return trace.operators.size(); })
      .def_property_readonly("values", [](const Trace& trace) { return trace.values.size(); })
      .def_property_readonly("moments", [](const Trace& trace) { return trace.moments.size(); })
      .def(
          "peak", [](const Trace& trace) { return keep_everything(trace).budget; }, NoInterpreter())
      .def(
          "floor", [](const Trace& trace) { return floor_of(trace).bytes; }, NoInterpreter())
      .def("cost", [](const Trace& trace) { return trace.total_cost(); })
      .def(
          "json", [](const Trace& trace) { return to_json(trace); }, NoInterpreter())
      .def("__eq__", [](const Trace& a, const Trace& b) { return a == b; });
  py::class_<Plan>(module, "Plan")
      .def_property_readonly("budget", [](const Plan& plan) { return plan.budget; })
      .def_property_readonly("actions", [](const Plan& plan) { return plan.actions.size(); })
      .def(
          "json", [](const Plan& plan) { return to_json(plan); }, NoInterpreter())
      .def("__eq__", [](const Plan& a, const Plan& b) { return a == b; });
  module.def(
      "parse_trace", [](const std::string& json) { return parse_trace(json); }, py::arg("json"), NoInterpreter());
  module.def(
      "read_trace", [](const std::string& path) { return read_trace(path); }, py::arg("path"), NoInterpreter());
  module.def(
      "write_trace", [](const std::string& path, const Trace& trace) { write_trace(path, trace); }, py::arg("path"),
      py::arg("trace"), NoInterpreter());
  module.def(
      "parse_plan", [](const std::string& json) { return parse_plan(json); }, py::arg("json"), NoInterpreter());
  module.def(
      "read_plan", [](const std::string& path) { return read_plan(path); }, py::arg("path"), NoInterpreter());
  module.def(
      "write_plan", [](const std::string& path, const Plan& plan) { write_plan(path, plan); }, py::arg("path"),
      py::arg("plan"), NoInterpreter());

  py::class_<PlanResult>(module, "PlanResult")
      .def_property_readonly("status", [](const PlanResult& result) { return std::string(name(result.status)); })
      .def_property_readonly("plan", [](const PlanResult& result) { return result.plan; })
      .def_property_readonly("peak", [](const PlanResult& result) { return result.simulation.peak; })
      .def_property_readonly("overhead", [](const PlanResult& result) { return result.cost_ratio() - 1; })
      .def_property_readonly("gap", [](const PlanResult& result) { return result.gap(); })
      .def_property_readonly("smallest_feasible", [](const PlanResult& result) { return result.smallest_feasible; })
      .def(
          "text", [](const PlanResult& result, const Trace& trace) { return to_text(trace, result); }, py::arg("trace"))
      .def(
          "json", [](const PlanResult& result, const Trace& trace) { return json_line(trace, result); },
          py::arg("trace"));
  module.def("make_plan", &make, py::arg("trace"), py::arg("budget"), py::arg("planner"), py::arg("count"),
             py::arg("seconds"), py::arg("moves"), py::arg("seed"), py::arg("start"));
  module.def("planners", [] {
    py::dict all;
    for (const PlannerInfo& planner : planners())
      all[py::str(std::string(planner.name))] = std::string(planner.summary);
    return all;
  });
  module.def(
      "simulate_json",
      [](const Trace& trace, const Plan& plan) { return json_line(trace, plan, simulate(trace, plan)); },
      py::arg("trace"), py::arg("plan"), NoInterpreter());

  py::class_<Curve>(module, "Curve")
      .def("points", [](const Curve& curve) { return points_of(curve); })
      .def_property_readonly("knee",
                             [](const Curve& curve) -> std::optional<Bytes> {
                               if (!curve.knee) return std::nullopt;
                               return curve.points[*curve.knee].budget;
                             })
      .def("text", [](const Curve& curve) { return to_text(curve); })
      .def("advice", [](const Curve& curve) { return advice(curve); })
      .def(
          "svg", [](const Curve& curve, const std::string& title) { return to_svg(curve, title); }, py::arg("title"))
      .def(
          "json", [](const Curve& curve, const Trace& trace) { return json_line(trace, curve); }, py::arg("trace"));
  module.def("make_curve", &curve_of, py::arg("trace"), py::arg("points"), py::arg("seconds"), py::arg("seed"));

  py::class_<Fit>(module, "Fit")
      .def("points", [](const Fit& fit) { return points_of(fit); })
      .def_property_readonly("largest", [](const Fit& fit) { return size_at(fit, fit.largest); })
      .def_property_readonly("cheapest", [](const Fit& fit) { return size_at(fit, fit.cheapest); })
      .def("text", [](const Fit& fit) { return to_text(fit) + "\n" + advice(fit) + "\n"; })
      .def(
          "svg", [](const Fit& fit, const std::string& title) { return to_svg(fit, title); }, py::arg("title"))
      .def("json", [](const Fit& fit) { return json_line(fit); });
  module.def("make_fit", &fit_of, py::arg("recorded"), py::arg("budget"), py::arg("wanted"), py::arg("at_most"),
             py::arg("seconds"));

  module.def(
      "parse_budget", [](const std::string& text, Bytes peak) { return parse_budget(text, peak); }, py::arg("text"),
      py::arg("peak"));
  module.def(
      "parse_bytes", [](const std::string& text) { return parse_bytes(text); }, py::arg("text"));
  module.def("format_bytes", &format_bytes, py::arg("bytes"));
}

}  // namespace reprise::python
