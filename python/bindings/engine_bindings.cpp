// Backward as Python runs it, and waiting with and without the interpreter's lock.
#include "bindings_of.h"
#include "torch/hooks/backward.h"
#include "torch/memory/arbiter.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

// Whoever frees a storage of Python's under the arbiter may need the interpreter's lock. So nobody waits for the
// arbiter with that lock in hand.
void wait_without_interpreter(internal::Arbiter::Mutex& arbiter) {
  if (!Py_IsInitialized() || !PyGILState_Check()) return arbiter.lock();
  PyThreadState* const state = PyEval_SaveThread();
  arbiter.lock();
  // This waits for the interpreter with the arbiter in hand. Who has the interpreter never waits for the arbiter with
  // it, so this ends.
  PyEval_RestoreThread(state);
}

}  // namespace

void add_engine(py::module_& module) {
  internal::Arbiter::wait_with(wait_without_interpreter);
  py::class_<internal::BackwardRun>(module, "BackwardRun")
      .def(py::init<bool>(), py::arg("create_graph"), py::call_guard<py::gil_scoped_release>())
      .def("succeeded", &internal::BackwardRun::succeeded, py::call_guard<py::gil_scoped_release>());
}

}  // namespace reprise::python
