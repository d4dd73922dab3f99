// Regions that evict what autograd saves in them: what reprise.checkpoint is made of.
#include <memory>
#include <optional>

#include "bindings_of.h"
#include "reprise/torch/checkpoint.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

// A region that begins and ends when Python says so. Regions of a thread end in the opposite order of their beginning.
class Region {
 public:
  explicit Region(std::shared_ptr<CheckpointSite> site) : site_(std::move(site)), region_(std::in_place, *site_) {}
  ~Region() {
    if (!region_) return;
    const py::gil_scoped_release no_interpreter;
    region_.reset();
  }
  void end() { region_.reset(); }
  [[nodiscard]] Bytes evicted() const { return region_ ? region_->evicted() : 0; }

 private:
  std::shared_ptr<CheckpointSite> site_;
  std::optional<CheckpointRegion> region_;
};

}  // namespace

void add_regions(py::module_& module) {
  using NoInterpreter = py::call_guard<py::gil_scoped_release>;
  py::class_<CheckpointSite, std::shared_ptr<CheckpointSite>>(module, "Site").def(py::init<>());
  py::class_<Region>(module, "Region")
      .def(py::init<std::shared_ptr<CheckpointSite>>(), py::arg("site"), NoInterpreter())
      .def("end", &Region::end, NoInterpreter())
      .def("evicted", &Region::evicted, NoInterpreter());
}

}  // namespace reprise::python
