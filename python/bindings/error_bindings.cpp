// Errors of Reprise as exceptions of Python.
//
// The types are classes of python/reprise/errors.py, which it hands over when it is imported. An error that is thrown
// in a call of ours becomes one by pybind11's translators. One that is thrown inside of torch, in a kernel or in a node
// of backward, goes through bindings that know only torch's own errors: it leaves Reprise as a `torch::PyTorchError`
// that names its type. Only the text comes through there, so the facts wait here for the exception to ask for them.
#include <torch/csrc/Exceptions.h>

#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "bindings_of.h"
#include "reprise/chain/statistics.h"
#include "reprise/store/store.h"
#include "reprise/torch/errors.h"
#include "torch/error_door.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

// Never freed: errors may come while the interpreter ends.
struct Types {
  PyObject *error = nullptr, *session = nullptr, *budget = nullptr, *mismatch = nullptr, *changed_input = nullptr;
  PyObject *chain = nullptr, *not_stored = nullptr, *does_not_fit = nullptr, *disk = nullptr;
};
Types types;

// The facts of the newest budget errors, by their text: the exception may be made on another thread.
class Facts {
 public:
  void add(const BudgetError& error) {
    const std::scoped_lock lock(mutex_);
    newest_.emplace_back(error.what(), error.facts());
    if (newest_.size() > most) newest_.pop_front();
  }
  std::optional<BudgetError::Facts> find(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    for (auto one = newest_.rbegin(); one != newest_.rend(); ++one) {
      if (one->first == text) return one->second;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t most = 16;
  std::mutex mutex_;
  std::deque<std::pair<std::string, BudgetError::Facts>> newest_;
};

Facts& facts() {
  static auto* const one = new Facts;
  return *one;
}

constexpr internal::BudgetAdvice advice_in_python = {
    "session.measure(step) finds out without the memory, and session.run(step) plans a step that does not fit and runs "
    "it again (unless the step asks what it has computed)",
    "begin with a larger one, wait for the plan, and lower it by session.budget"};

class ErrorForTorch final : public torch::PyTorchError {
 public:
  ErrorForTorch(PyObject* type, const char* text) : torch::PyTorchError(text), type_(type) {}
  PyObject* python_type() override { return type_ ? type_ : PyExc_RuntimeError; }

 private:
  PyObject* const type_;
};

// The type for the error in flight, and its text; nullptr: it is none of ours.
std::pair<PyObject*, std::string> type_of_current() {
  try {
    throw;
  } catch (const BudgetError& error) {
    facts().add(error);
    return {types.budget, error.what()};
  } catch (const MismatchError& error) {
    return {types.mismatch, error.what()};
  } catch (const ChangedInputError& error) {
    return {types.changed_input, error.what()};
  } catch (const SessionError& error) {
    return {types.session, error.what()};
  } catch (const ChainError& error) {
    return {types.chain, error.what()};
  } catch (const NotStored& error) {
    return {types.not_stored, error.what()};
  } catch (const DoesNotFit& error) {
    return {types.does_not_fit, error.what()};
  } catch (const DiskError& error) {
    return {types.disk, error.what()};
  } catch (const BadOption& error) {
    return {PyExc_ValueError, error.what()};
  } catch (const BadInput& error) {
    return {PyExc_ValueError, error.what()};
  } catch (const Error& error) {
    return {types.error, error.what()};
  } catch (...) {
    return {nullptr, ""};
  }
}

// Needs no lock of the interpreter's: the exception is made by torch, where it has it.
void leave_for_torch() {
  const auto [type, text] = type_of_current();
  if (type) throw ErrorForTorch(type, text.c_str());
}

void translate(std::exception_ptr error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (ErrorForTorch& for_torch) {
    PyErr_SetString(for_torch.python_type(), for_torch.what());
  } catch (const Error&) {
    const auto [type, text] = type_of_current();
    PyErr_SetString(type, text.c_str());
  }
}

py::dict facts_of(const std::string& text) {
  py::dict result;
  const auto found = facts().find(text);
  if (!found) return result;
  result["budget"] = found->budget;
  result["live"] = found->live;
  result["requested"] = found->requested;
  py::list pinned;
  for (const auto& [what, bytes] : found->pinned) pinned.append(py::make_tuple(what, bytes));
  result["pinned"] = pinned;
  const auto or_none = [](const std::optional<Bytes>& bytes) {
    return bytes ? py::object(py::int_(*bytes)) : py::object(py::none());
  };
  result["smallest_feasible"] = or_none(found->smallest_feasible);
  result["floor"] = or_none(found->floor);
  result["floor_set_by"] = found->floor_set_by;
  result["where"] = found->where;
  result["not_repeated"] = found->not_repeated;
  return result;
}

}  // namespace

void rethrow_own_error(py::error_already_set& error) {
  if (!types.budget || !error.matches(types.budget)) return;
  if (const auto found = facts().find(py::cast<std::string>(py::str(error.value())))) throw BudgetError(*found);
}

void add_errors(py::module_& module) {
  module.def("set_errors", [](const py::object& error, const py::object& session, const py::object& budget,
                              const py::object& mismatch, const py::object& changed_input, const py::object& chain,
                              const py::object& not_stored, const py::object& does_not_fit, const py::object& disk) {
    const auto kept = [](const py::object& type) { return type.inc_ref().ptr(); };
    types = {kept(error), kept(session),    kept(budget),       kept(mismatch), kept(changed_input),
             kept(chain), kept(not_stored), kept(does_not_fit), kept(disk)};
    internal::set_error_door(leave_for_torch);
    internal::set_budget_advice(&advice_in_python);
  });
  module.def("budget_facts", &facts_of, py::arg("text"));
  py::register_exception_translator(translate);
}

}  // namespace reprise::python
