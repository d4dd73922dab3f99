#include "python_states.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>

#include "fields.h"
#include "numpy_arrays.h"
#include "reprise/chain/statistics.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

using Interpreter = py::gil_scoped_acquire;

// A closure that is none of Python's own code hears no signal.
void hear_signals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

[[noreturn]] void fail_type(int layer, const std::string& what) {
  throw py::type_error("forward of layer " + std::to_string(layer) + " " + what);
}

// Shows something as one array. An array that is contiguous is shown as it is.
void show(const py::object& value, const std::function<void(const ArrayView&)>& use) {
  std::optional<ArrayView> view;
  std::optional<Array> fields;
  {
    const Interpreter interpreter;
    if (is_array(value)) {
      const auto array = py::reinterpret_borrow<py::array>(value);
      const auto element = element_of(array.dtype());
      if (element && is_contiguous(array)) view = view_of(array, *element);
    }
    if (!view) fields = array_of_fields(value);
  }
  use(view ? *view : fields->view());
}

py::object value_of(Array&& array) {
  return has_fields(array.shape()) ? state_of_fields(array) : py::object(numpy_of(std::move(array)));
}

}  // namespace

PythonStates::~PythonStates() {
  const Interpreter interpreter;
  clear();
  spares_.clear();
  call_over();
}

// ---- what is known about a state ----

PythonStates::Held PythonStates::look(py::object state) {
  Held held;
  if (is_array(state)) {
    const auto array = py::reinterpret_borrow<py::array>(state);
    if (element_of(array.dtype())) {
      held.bytes = array.nbytes();
      held.shown = read_only(array);
      if (held.bytes > 0 && array.writeable()) held.addresses = {reinterpret_cast<std::uintptr_t>(array.data())};
      held.value = std::move(state);
      return held;
    }
  }
  const py::tuple seen = function_of_states("look")(state);
  held.bytes = seen[0].cast<Bytes>();
  held.shown = seen[1];
  held.addresses = seen[2].cast<std::vector<std::uintptr_t>>();
  held.value = std::move(state);
  return held;
}

void PythonStates::count(const Held& held, int more) {
  for (const std::uintptr_t address : held.addresses) {
    const auto entry = held_at_.try_emplace(address).first;
    entry->second += more;
    if (entry->second == 0) held_at_.erase(entry);
  }
}

Id PythonStates::hold(Held&& held) {
  count(held, 1);
  return states_.put(std::move(held));
}

// Arrays that the closure was shown cannot be written, and may well be a part of what it returns.
void PythonStates::require_own_memory(int number, const Held& held) const {
  for (const std::uintptr_t address : held.addresses) {
    if (!held_at_.contains(address)) continue;
    throw ChainError("[chain] forward of layer " + std::to_string(number) +
                     " has made a state in memory that belongs to another state, which is remembered: it has to return "
                     "arrays of its own, or those that it got, or use kind='in_place' or kind='into', which hand it "
                     "memory to write to");
  }
}

void PythonStates::offer(py::object state, bool copy) {
  offered_ = look(std::move(state));
  if (copy || writes()) offered_ = look(copy_of(offered_, true));
}

py::object PythonStates::take(Id state) {
  count(states_[state], -1);
  return states_.take(state).value;
}

void PythonStates::lend(py::object state) {
  lent_ = look(std::move(state));
}

void PythonStates::work_on(py::object gradient) {
  gradient_ = std::move(gradient);
  measure_gradient();
}

// A gradient may be anything. One that is no state is not counted and not kept.
void PythonStates::measure_gradient() {
  gradient_bytes_.reset();
  try {
    gradient_bytes_ = look(gradient_).bytes;
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
}

void PythonStates::call_over() {
  functions_ = nullptr;
  offered_ = {};
  lent_ = {};
  gradient_ = {};
}

void PythonStates::give_back(py::object state) {
  if (writes()) spares_.push_back(look(std::move(state)));
}

// ---- closures ----

PythonStates::Made PythonStates::made(int number, Held&& held, py::object tape, bool with_tape) {
  require_own_memory(number, held);
  Made result{nowhere, nowhere, held.bytes};
  std::optional<Held> held_tape;
  if (with_tape) held_tape = look(std::move(tape));
  result.state = hold(std::move(held));
  if (held_tape) result.tape = tapes_.put(std::move(*held_tape));
  return result;
}

// Calls a closure that writes to a state, and returns its tape. In place `from` is nowhere.
py::object PythonStates::call_writing(int number, Id from, const py::object& to, bool with_tape) {
  const py::object& forward = functions_->forward;
  py::object result;
  if (from == nowhere) {
    result = tapes_wanted_ ? forward(number, to, with_tape) : forward(number, to);
  } else {
    result = tapes_wanted_ ? forward(number, shown(from), to, with_tape) : forward(number, shown(from), to);
  }
  hear_signals();
  if (!tapes_wanted_ && !result.is_none() && !result.is(to)) {
    fail_type(number, "returned '" + std::string(Py_TYPE(result.ptr())->tp_name) +
                          "': it is one that writes to a state, and returns None");
  }
  return result;
}

PythonStates::Made PythonStates::forward(int number, Id state, bool with_tape) {
  const Interpreter interpreter;
  if (writes()) {
    const bool in_place = kind_ == ForwardKind::in_place;
    const py::object to = copy_of((*this)[state], in_place);
    py::object tape = call_writing(number, in_place ? nowhere : state, to, with_tape);
    return made(number, look(to), std::move(tape), with_tape);
  }
  py::object result =
      tapes_wanted_ ? functions_->forward(number, shown(state), with_tape) : functions_->forward(number, shown(state));
  hear_signals();
  py::object tape;
  if (tapes_wanted_) {
    if (!py::isinstance<py::tuple>(result) || py::len(result) != 2) {
      fail_type(number, "has to return the state after it and its tape, (state, tape): the chain has tapes");
    }
    tape = result[py::int_(1)];
    result = result[py::int_(0)];
  }
  if (result.is_none()) {
    fail_type(number, "returned None: it has to return the state after it, unless kind is 'in_place' or 'into'");
  }
  return made(number, look(std::move(result)), std::move(tape), with_tape);
}

PythonStates::Made PythonStates::advance(int number, Id state, bool with_tape) {
  const Interpreter interpreter;
  const Bytes replaced = bytes(state);
  const py::object value = take(state);
  py::object tape = call_writing(number, nowhere, value, with_tape);
  Made result = made(number, look(value), std::move(tape), with_tape);
  result.replaced = replaced;
  return result;
}

void PythonStates::backward(int number, Id state, Id tape) {
  const Interpreter interpreter;
  const py::object& backward = functions_->backward;
  py::object gradient = std::move(gradient_);
  gradient_ = tapes_wanted_ ? backward(number, shown(state), tapes_[tape].value, std::move(gradient))
                            : backward(number, shown(state), std::move(gradient));
  hear_signals();
  if (gradient_.is_none()) {
    throw py::type_error("backward of layer " + std::to_string(number) +
                         " returned None: it has to return the gradient with respect to the state before it");
  }
  measure_gradient();
}

// ---- slots ----

Bytes PythonStates::drop(Id state) {
  const Interpreter interpreter;
  count(states_[state], -1);
  Held held = states_.take(state);
  const Bytes bytes = held.bytes;
  if (hold_spares_) spares_.push_back(std::move(held));
  return bytes;
}

Bytes PythonStates::drop_tape(Id tape) {
  const Interpreter interpreter;
  return tapes_.take(tape).bytes;
}

void PythonStates::clear() noexcept {
  const Interpreter interpreter;
  states_.clear();
  tapes_.clear();
  held_at_.clear();
}

void PythonStates::hold_spares(bool hold) {
  const Interpreter interpreter;
  hold_spares_ = hold && writes();
  if (!hold_spares_) spares_.clear();
}

Bytes PythonStates::spare_bytes() const {
  Bytes sum = 0;
  for (const Held& spare : spares_) sum += spare.bytes;
  return sum;
}

// A state to write to: a spare one if there is one, and otherwise a copy of this one. Its contents are those of this
// one if they matter.
py::object PythonStates::copy_of(const Held& held, bool contents) {
  if (spares_.empty()) return function_of_states("copy")(held.value);
  py::object spare = std::move(spares_.back().value);
  spares_.pop_back();
  return contents ? function_of_states("copy_into")(held.value, spare) : spare;
}

Id PythonStates::clone(Id state) {
  const Interpreter interpreter;
  return put(copy_of((*this)[state], true));
}

// ---- as arrays ----

void PythonStates::encode(Id state, const std::function<void(const ArrayView&)>& use) const {
  show((*this)[state].value, use);
}

Id PythonStates::decode(Array array) {
  const Interpreter interpreter;
  return put(value_of(std::move(array)));
}

void PythonStates::encode_gradient(const std::function<void(const ArrayView&)>& use) const {
  show(gradient_, use);
}

void PythonStates::decode_gradient(Array array) {
  const Interpreter interpreter;
  gradient_ = value_of(std::move(array));
  measure_gradient();
}

}  // namespace reprise::python
