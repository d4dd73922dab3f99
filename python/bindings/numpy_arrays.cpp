#include "numpy_arrays.h"

#include <memory>
#include <utility>

#include "reprise/trace/error.h"

namespace py = pybind11;

namespace reprise::python {

std::optional<Element> element_of(const py::dtype& type) {
  const char order = type.byteorder();
  if (order != '=' && order != '|') return std::nullopt;
  const auto bytes = type.itemsize();
  switch (type.kind()) {
    case 'b': return Element::boolean;
    case 'f':
      if (bytes == 2) return Element::float16;
      if (bytes == 4) return Element::float32;
      if (bytes == 8) return Element::float64;
      return std::nullopt;
    case 'c':
      if (bytes == 8) return Element::complex64;
      if (bytes == 16) return Element::complex128;
      return std::nullopt;
    case 'i':
      if (bytes == 1) return Element::int8;
      if (bytes == 2) return Element::int16;
      return bytes == 4 ? Element::int32 : Element::int64;
    case 'u':
      if (bytes == 1) return Element::uint8;
      if (bytes == 2) return Element::uint16;
      return bytes == 4 ? Element::uint32 : Element::uint64;
    default: return std::nullopt;
  }
}

py::dtype dtype_of(Element element) {
  if (element == Element::bfloat16)
    throw Error("[store] the value has elements of bfloat16, which numpy does not have");
  return py::dtype(element == Element::boolean ? "bool" : name(element));
}

bool is_array(py::handle object) {
  static PyObject* const type =
      py::object(py::module_::import("numpy").attr("ndarray")).release().ptr();  // never freed
  return reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == type;
}

bool is_contiguous(const py::array& array) {
  return array.flags() & py::array::c_style;
}

ArrayView view_of(const py::array& array, Element element) {
  return {element,
          Shape(array.shape(), array.shape() + array.ndim()),
          {static_cast<const std::byte*>(array.data()), static_cast<std::size_t>(array.nbytes())}};
}

py::array numpy_of(Array&& array) {
  const py::dtype type = dtype_of(array.element());
  auto kept = std::make_unique<Array>(std::move(array));
  const std::vector<py::ssize_t> shape(kept->shape().begin(), kept->shape().end());
  void* const data = kept->data().data();
  const py::capsule owner(kept.get(), [](void* owned) { delete static_cast<Array*>(owned); });
  kept.release();
  return {type, shape, data, owner};
}

py::array read_only(const py::array& array) {
  py::array view(array.dtype(), std::vector<py::ssize_t>(array.shape(), array.shape() + array.ndim()),
                 std::vector<py::ssize_t>(array.strides(), array.strides() + array.ndim()), array.data(), array);
  py::detail::array_proxy(view.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return view;
}

}  // namespace reprise::python
