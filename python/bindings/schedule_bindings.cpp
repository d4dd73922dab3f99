// Schedules of chains. Python sees them as objects that it passes on.
#include <pybind11/stl.h>

#include <chrono>
#include <variant>

#include "bindings_of.h"
#include "dicts.h"
#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"
#include "shared_schedule.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

SharedSchedule budget(Bytes bytes, double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) {
    throw BadOption("[chain] seconds is " + std::to_string(seconds) + ": it must be from 0 to 1e9");
  }
  return {schedule::budget(bytes, std::chrono::duration<double>(seconds))};
}

SharedSchedule memory_and_disk(int memory_slots, int disk_slots, double write_cost, double read_cost,
                               double forward_cost, double backward_cost) {
  return {schedule::memory_and_disk({memory_slots, disk_slots, write_cost, read_cost, forward_cost, backward_cost})};
}

// Before anything has run: of a number of layers, or of their sizes.
template <class Ask>
bool answer(const std::variant<int, py::dict>& layers, const Ask& ask) {
  if (const int* count = std::get_if<int>(&layers)) {
    const py::gil_scoped_release no_interpreter;
    return ask(*count);
  }
  const ChainForm form = form_of(std::get<py::dict>(layers));
  check(form);
  const py::gil_scoped_release no_interpreter;
  return ask(form);
}

}  // namespace

void add_schedules(py::module_& module) {
  using Layers = std::variant<int, py::dict>;
  py::class_<SharedSchedule>(module, "Schedule")
      .def("text", [](const SharedSchedule& self) { return self.pointer->text(); })
      .def(
          "remembers",
          [](const SharedSchedule& self, const Layers& layers, Id position) {
            return answer(layers, [&](const auto& of) { return self.pointer->remembers(of, position); });
          },
          py::arg("layers"), py::arg("position"))
      .def(
          "remembers_before",
          [](const SharedSchedule& self, const Layers& layers, Id position) {
            return answer(layers, [&](const auto& of) { return self.pointer->remembers_before(of, position); });
          },
          py::arg("layers"), py::arg("position"));

  module.def("schedule_everything", [] { return SharedSchedule{schedule::everything()}; });
  module.def(
      "schedule_every", [](int n, std::optional<int> maximum) { return SharedSchedule{schedule::every(n, maximum)}; },
      py::arg("n"), py::arg("maximum"));
  module.def(
      "schedule_slots", [](int slots) { return SharedSchedule{schedule::slots(slots)}; }, py::arg("slots"));
  module.def("schedule_memory_and_disk", &memory_and_disk, py::arg("memory_slots"), py::arg("disk_slots"),
             py::arg("write_cost"), py::arg("read_cost"), py::arg("forward_cost"), py::arg("backward_cost"));
  module.def("schedule_budget", &budget, py::arg("bytes"), py::arg("seconds"));
  module.def(
      "schedule_online", [](int slots) { return SharedSchedule{schedule::online(slots)}; }, py::arg("slots"));
  module.def(
      "schedule_selective", [](double threshold) { return SharedSchedule{schedule::selective(threshold)}; },
      py::arg("threshold"));
  module.def(
      "schedule_costly_layers", [](double threshold) { return SharedSchedule{schedule::costly_layers(threshold)}; },
      py::arg("threshold"));
  module.def(
      "schedule_after", [](std::vector<Id> positions) { return SharedSchedule{schedule::after(std::move(positions))}; },
      py::arg("positions"));
  module.def("revolve_steps", &revolve_steps, py::arg("layers"), py::arg("slots"));
}

}  // namespace reprise::python
