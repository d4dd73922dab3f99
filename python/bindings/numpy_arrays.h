// Arrays of numpy as arrays of Reprise, and back, without a copy. Everything here needs the interpreter's lock.
#pragma once

#include <pybind11/numpy.h>

#include <optional>

#include "reprise/store/array.h"

namespace reprise::python {

// Returns the element that numbers of this type are. Empty if there is none: texts, dates, numbers of another machine.
[[nodiscard]] std::optional<Element> element_of(const pybind11::dtype&);
// Returns the type that numpy has for an element. Throws Error for bfloat16, which numpy does not have.
[[nodiscard]] pybind11::dtype dtype_of(Element);

// Returns true if this is an array of numpy itself, and not of a class derived from it, such as one with a mask.
[[nodiscard]] bool is_array(pybind11::handle);
[[nodiscard]] bool is_contiguous(const pybind11::array&);  // in C's order

// Views an array that is contiguous and stays alive.
[[nodiscard]] ArrayView view_of(const pybind11::array&, Element);
// Returns an array of numpy that owns this memory.
[[nodiscard]] pybind11::array numpy_of(Array&&);
// Returns the same memory as an array that cannot be written.
[[nodiscard]] pybind11::array read_only(const pybind11::array&);

}  // namespace reprise::python
