// What torch.compile makes of a graph, as one operator of the dispatcher: `reprise::compiled`.
// python/reprise/compiled.py puts it in the place of the compiled function.
//
// The operator takes the graph, its tensors and everything else that it is called with, and returns the tensors among
// what the graph returns. To Reprise it is an operator like others: it is recorded, and replaying it calls the function
// again, with the interpreter's lock, on the recorded inputs and random numbers.
#include <ATen/core/dispatch/Dispatcher.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "bindings_of.h"
#include "torch/hooks/compiled.h"
#include "torch/libtorch/error_translation.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

namespace compiled = internal::compiled;

// ---- the function, for as long as any recipe may call it -----------------------------------------------------------

// Recipes end on any thread, and under locks of ours: the interpreter lets go of their functions as soon as it runs
// code of its main thread.
class Released {
 public:
  void add(PyObject* function) {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(function);
    if (!asked_ && Py_IsInitialized()) asked_ = Py_AddPendingCall(&Released::on_pending_call, nullptr) == 0;
  }
  // With the interpreter's lock.
  void let_go() {
    std::vector<PyObject*> all;
    {
      const std::scoped_lock lock(mutex_);
      all.swap(waiting_);
      asked_ = false;
    }
    for (PyObject* const function : all) Py_DECREF(function);
  }

 private:
  static int on_pending_call(void*);

  std::mutex mutex_;
  bool asked_ = false;  // the interpreter, for let_go()
  std::vector<PyObject*> waiting_;
};

Released& released() {
  static auto* const one = new Released;
  return *one;
}

int Released::on_pending_call(void*) {
  released().let_go();
  return 0;
}

struct Function final : torch::CustomClassHolder {
  explicit Function(const py::object& function) : object(function.inc_ref().ptr()) {}
  ~Function() override { released().add(object); }
  PyObject* const object;
};

// ---- the operator --------------------------------------------------------------------------------------------------

// Says for each argument whether it is the next tensor or the next of the rest.
using Layout = std::vector<std::int64_t>;
enum : std::int64_t { tensor_next, number_next, none_next };

// A call of the program's, not a replay: what the operator has to know beside its arguments, and what it returns beside
// tensors.
struct Call {
  c10::List<at::Tensor> tensors;        // tells it apart from a replay that comes first
  c10::impl::LocalDispatchKeySet keys;  // as the program had them
  py::list results;
  std::vector<bool> is_tensor;  // among the results; the others are in `results` already
};
thread_local Call* current_call = nullptr;

class CurrentCall {
 public:
  explicit CurrentCall(Call& call) : outer_(std::exchange(current_call, &call)) {}
  ~CurrentCall() { current_call = outer_; }
  CurrentCall(const CurrentCall&) = delete;
  CurrentCall& operator=(const CurrentCall&) = delete;

 private:
  Call* const outer_;
};

// The tensors among the results.
c10::List<at::Tensor> take_results(const py::object& returned, Call* call) {
  c10::List<at::Tensor> tensors;
  const auto results = py::isinstance<py::list>(returned) || py::isinstance<py::tuple>(returned)
                           ? py::cast<py::sequence>(returned)
                           : py::cast<py::sequence>(py::make_tuple(returned));
  for (const py::handle result : results) {
    const bool is_tensor = THPVariable_Check(result.ptr());
    if (is_tensor) tensors.push_back(THPVariable_Unpack(result.ptr()));
    if (call) {
      call->is_tensor.push_back(is_tensor);
      if (!is_tensor) call->results.append(result);
    }
  }
  return tensors;
}

// Where Reprise replays, an error of its own is caught by itself: it must not stay one of Python's.
[[noreturn]] void throw_again(py::error_already_set& error, bool replayed) {
  if (replayed) rethrow_own_error(error);
  throw;
}

c10::List<at::Tensor> call_function(PyObject* function, c10::List<at::Tensor> tensors,
                                    const std::vector<std::int64_t>& numbers, const Layout& layout, Call* call) {
  const py::gil_scoped_acquire interpreter;
  released().let_go();  // the main thread may be waiting for this one
  const internal::ErrorTranslationPoint through_python;
  try {
    py::list arguments;
    std::size_t tensor = 0, number = 0;
    for (const std::int64_t next : layout) {
      if (next == tensor_next) {
        arguments.append(py::reinterpret_steal<py::object>(THPVariable_Wrap(tensors.get(tensor++))));
      } else if (next == number_next) {
        arguments.append(py::int_(numbers[number++]));
      } else {
        arguments.append(py::none());
      }
    }
    tensors.clear();  // the function empties its arguments as it goes
    return take_results(py::handle(function)(arguments), call);
  } catch (py::error_already_set& error) {
    throw_again(error, call == nullptr);
  }
}

void run_graph(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const Layout layout = torch::jit::pop(*stack).toIntVector();
  const std::vector<std::int64_t> numbers = torch::jit::pop(*stack).toIntVector();
  c10::List<at::Tensor> tensors = torch::jit::pop(*stack).toTensorList();
  const c10::IValue graph = torch::jit::pop(*stack);
  auto* const function = static_cast<Function*>(graph.toCapsule().get())->object;
  Call* const call = current_call && current_call->tensors.is(tensors) ? current_call : nullptr;
  if (!call) {
    stack->emplace_back(call_function(function, tensors, numbers, layout, nullptr));
    return;
  }
  const c10::impl::ForceDispatchKeyGuard as_the_program_had_them(call->keys);
  compiled::Graph running;
  c10::List<at::Tensor> results = call_function(function, tensors, numbers, layout, call);
  running.ran();
  stack->emplace_back(std::move(results));
}

TORCH_LIBRARY(reprise, library) {
  const auto argument = [](const char* name, const c10::TypePtr& type) { return c10::Argument(name, type); };
  library.def(
      c10::FunctionSchema("reprise::compiled", "",
                          {argument("graph", c10::AnyType::get()), argument("tensors", c10::ListType::ofTensors()),
                           argument("numbers", c10::ListType::ofInts()), argument("layout", c10::ListType::ofInts())},
                          {c10::Argument("", c10::ListType::ofTensors())}));
  library.impl("compiled", c10::DispatchKey::CompositeExplicitAutograd,
               torch::CppFunction::makeFromBoxedFunction<&run_graph>());
  library.impl("compiled", c10::DispatchKey::Autograd, torch::CppFunction::makeFallthrough());
}

const c10::OperatorHandle& compiled_operator() {
  static const auto* const op =
      new c10::OperatorHandle(c10::Dispatcher::singleton().findSchemaOrThrow("reprise::compiled", ""));
  return *op;
}

// ---- calls of the program ------------------------------------------------------------------------------------------

struct Arguments {
  c10::List<at::Tensor> tensors;
  c10::List<std::int64_t> numbers, layout;
  bool plain = true;  // tensors in plain memory on the CPU, whole numbers and None, and nothing else

  explicit Arguments(const py::list& arguments) {
    for (const py::handle argument : arguments) {
      if (THPVariable_Check(argument.ptr())) {
        const at::Tensor& tensor = THPVariable_Unpack(argument.ptr());
        plain = plain && internal::libtorch::is_plain(tensor) && !tensor.unsafeGetTensorImpl()->is_wrapped_number();
        tensors.push_back(tensor);
        layout.push_back(tensor_next);
      } else if (PyLong_CheckExact(argument.ptr())) {
        int overflow = 0;
        numbers.push_back(PyLong_AsLongLongAndOverflow(argument.ptr(), &overflow));
        plain = plain && overflow == 0;
        layout.push_back(number_next);
      } else {
        plain = plain && argument.is_none();
        layout.push_back(none_next);
      }
    }
  }
};

std::vector<at::Tensor> tensors_of(const py::handle& all, const std::optional<std::vector<std::int64_t>>& only) {
  std::vector<at::Tensor> tensors;
  std::int64_t index = 0;
  const auto wanted = [&] { return !only || std::find(only->begin(), only->end(), index) != only->end(); };
  for (const py::handle one : py::iter(all)) {
    if (THPVariable_Check(one.ptr()) && wanted()) {
      const at::Tensor& tensor = THPVariable_Unpack(one.ptr());
      if (tensor.has_storage()) tensors.push_back(tensor);
    }
    ++index;
  }
  return tensors;
}

// A function that torch.compile made, in whose device this stands: it takes a list of arguments, which it may empty.
class CompiledGraph {
 public:
  // Replayable: it changes none of its arguments. Else these are the ones that it changes.
  CompiledGraph(const py::object& function, bool replayable, std::vector<std::int64_t> written)
      : function_(function),
        graph_(c10::IValue::make_capsule(c10::make_intrusive<Function>(function))),
        replayable_(replayable),
        written_(std::move(written)) {}

  py::object call(const py::list& arguments) const {
    if (!compiled::is_watched()) return function_(arguments);
    if (replayable_ && compiled::may_be_operator()) {
      Arguments split(arguments);
      if (split.plain && !split.tensors.empty()) {
        arguments.attr("clear")();
        return call_operator(std::move(split));
      }
    }
    return call_opaque(arguments);
  }

 private:
  [[nodiscard]] py::object call_operator(Arguments arguments) const {
    Call call{arguments.tensors, c10::impl::tls_local_dispatch_key_set(), py::list(), {}};
    torch::jit::Stack stack{graph_, std::move(arguments.tensors), std::move(arguments.numbers),
                            std::move(arguments.layout)};
    {
      const py::gil_scoped_release no_interpreter;
      const compiled::AsOperator recorded;
      const c10::impl::ExcludeDispatchKeyGuard modes(c10::python_ks);  // they see what the graph calls, not the graph
      const CurrentCall current(call);
      compiled_operator().callBoxed(&stack);
    }
    const c10::List<at::Tensor> tensors = stack.back().toTensorList();
    py::list results;
    std::size_t tensor = 0, other = 0;
    for (const bool is_tensor : call.is_tensor) {
      if (is_tensor) {
        results.append(py::reinterpret_steal<py::object>(THPVariable_Wrap(tensors.get(tensor++))));
      } else {
        results.append(call.results[other++]);
      }
    }
    return results;
  }

  [[nodiscard]] py::object call_opaque(const py::list& arguments) const {
    std::vector<const c10::StorageImpl*> given;
    for (const at::Tensor& tensor : tensors_of(arguments, std::nullopt)) {
      given.push_back(internal::libtorch::storage_of(tensor));
    }
    const auto written = tensors_of(arguments, written_);
    compiled::Opaque opaque(internal::writes::Written(written.begin(), written.end()));
    py::object results = function_(arguments);
    if (py::isinstance<py::list>(results) || py::isinstance<py::tuple>(results)) {
      opaque.made(
          tensors_of(results, std::nullopt), given,
          written_.empty() ? "compiled code that may do more than compute" : "compiled code that changes its inputs");
    }
    return results;
  }

  const py::object function_;
  const c10::IValue graph_;
  const bool replayable_;
  const std::vector<std::int64_t> written_;
};

// Code that was compiled by somebody else, or before Reprise was there: opaque. It writes into some of its arguments,
// and in backward does with all of them as it likes.
py::object call_code(const py::object& function, const py::list& arguments, const std::vector<std::int64_t>& written,
                     bool backward) {
  if (!compiled::is_watched()) return function(arguments);
  std::optional<compiled::GivenAway> given;
  if (backward) given.emplace(tensors_of(arguments, std::nullopt));
  const auto changed = tensors_of(arguments, written);
  const compiled::Opaque opaque(internal::writes::Written(changed.begin(), changed.end()));
  return function(arguments);
}

}  // namespace

void add_compiled_code(py::module_& module) {
  py::class_<CompiledGraph> graph(module, "CompiledGraph");
  graph
      .def(py::init<py::object, bool, std::vector<std::int64_t>>(), py::arg("function"), py::arg("replayable"),
           py::arg("written"))
      .def("__call__", &CompiledGraph::call, py::arg("arguments"));
  graph.attr("_boxed_call") = true;  // as torch calls functions that take a list
  module.def("call_code", &call_code, py::arg("function"), py::arg("arguments"), py::arg("written"),
             py::arg("backward"));
}

}  // namespace reprise::python
