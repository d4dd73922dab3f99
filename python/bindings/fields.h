// States of several arrays, or of anything but an array that is contiguous, as one array: the fields one after the
// other, and behind them a description of the state, in which numbers have all their bits. See
// python/reprise/states.py.
#pragma once

#include <pybind11/pybind11.h>

#include "reprise/store/array.h"
#include "reprise/store/codec.h"

namespace reprise::python {

// Returns a function of states.py.
[[nodiscard]] pybind11::object function_of_states(const char* name);

// Both need the interpreter's lock; the first gives it up while it copies.
[[nodiscard]] Array array_of_fields(pybind11::handle state);
[[nodiscard]] pybind11::object state_of_fields(const Array&);

// Returns true if an array was made of fields: no array of numpy has so many dimensions.
[[nodiscard]] bool has_fields(const Shape&);

// Returns a codec that codes arrays as this one does, and of arrays of fields only the fields. It lives as long as the
// process.
[[nodiscard]] const Codec& codec_of_fields(const Codec&);
// Returns the codec that this one was made of.
[[nodiscard]] const Codec& codec_inside(const Codec&);

}  // namespace reprise::python
