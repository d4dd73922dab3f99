// Errors of Reprise as exceptions of Python.
//
// The types are classes of python/reprise/errors.py, which it hands over when it is imported. An error that is thrown
// in a call of ours becomes one by pybind11's translators. One that is thrown inside of torch, in a kernel or in a node
// of backward, goes through bindings that know only torch's own errors: it leaves Reprise as a `torch::PyTorchError`
// that names its type. Only the text comes through there, so the facts wait here for the exception to ask for them. The
// interpreter of TorchScript loses the type, too: its error is known by the text that it quotes.
#include <torch/csrc/Exceptions.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "bindings_of.h"
#include "reprise/chain/statistics.h"
#include "reprise/store/store.h"
#include "reprise/torch/errors.h"
#include "torch/libtorch/error_translation.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

// Never freed: errors may come while the interpreter ends.
struct Types {
  PyObject *error = nullptr, *session = nullptr, *budget = nullptr, *mismatch = nullptr, *changed_input = nullptr;
  PyObject *chain = nullptr, *not_stored = nullptr, *does_not_fit = nullptr, *disk = nullptr;
};
Types types;

// Something about each of the newest errors, by their text: the exception may be made on another thread.
template <class Something>
class Newest {
 public:
  void add(std::string text, Something something) {
    const std::scoped_lock lock(mutex_);
    all_.emplace_back(std::move(text), std::move(something));
    if (all_.size() > most) all_.pop_front();
  }
  template <class Matches>
  std::optional<std::pair<std::string, Something>> find(const Matches& matches) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(all_.rbegin(), all_.rend(), [&](const auto& one) { return matches(one.first); });
    return found == all_.rend() ? std::nullopt : std::optional(*found);
  }

 private:
  static constexpr std::size_t most = 16;
  std::mutex mutex_;
  std::deque<std::pair<std::string, Something>> all_;
};

Newest<BudgetError::Facts>& facts() {
  static auto* const one = new Newest<BudgetError::Facts>;
  return *one;
}
// Of errors that went into torch.
Newest<PyObject*>& types_of_errors() {
  static auto* const one = new Newest<PyObject*>;
  return *one;
}

std::optional<BudgetError::Facts> find_facts(const std::string& text) {
  const auto found = facts().find([&](const std::string& one) { return one == text; });
  return found ? std::optional(found->second) : std::nullopt;
}

// The error of ours that one of TorchScript's quotes.
std::optional<std::pair<std::string, PyObject*>> find_quoted(const std::string& text) {
  if (text.find("TorchScript interpreter") == std::string::npos) return std::nullopt;
  return types_of_errors().find([&](const std::string& one) { return text.find(one) != std::string::npos; });
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
    facts().add(error.what(), error.facts());
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
  if (!type) return;
  types_of_errors().add(text, type);
  throw ErrorForTorch(type, text.c_str());
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
  const auto found = find_facts(text);
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
  if (!types.budget || !error.matches(PyExc_RuntimeError)) return;
  const auto text = py::cast<std::string>(py::str(error.value()));
  const auto quoted = find_quoted(text);
  if (quoted && quoted->second != types.budget) return;
  if (const auto found = find_facts(quoted ? quoted->first : text)) throw BudgetError(*found);
}

void add_errors(py::module_& module) {
  module.def("set_errors", [](const py::object& error, const py::object& session, const py::object& budget,
                              const py::object& mismatch, const py::object& changed_input, const py::object& chain,
                              const py::object& not_stored, const py::object& does_not_fit, const py::object& disk) {
    const auto kept = [](const py::object& type) { return type.inc_ref().ptr(); };
    types = {kept(error), kept(session),    kept(budget),       kept(mismatch), kept(changed_input),
             kept(chain), kept(not_stored), kept(does_not_fit), kept(disk)};
    internal::set_error_translation(leave_for_torch);
    internal::set_budget_advice(&advice_in_python);
  });
  module.def("budget_facts", &facts_of, py::arg("text"));
  module.def(
      "quoted_error",
      [](const std::string& text) -> py::object {
        const auto quoted = find_quoted(text);
        return quoted ? py::handle(quoted->second)(quoted->first) : py::none();
      },
      py::arg("text"));
  py::register_exception_translator(translate);
}

}  // namespace reprise::python
