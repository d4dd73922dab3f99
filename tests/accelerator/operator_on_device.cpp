#include "accelerator/operator_on_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <utility>
#include <vector>

#include "accelerator/accelerator.h"
#include "accelerator/device_generator.h"
#include "accelerator/launch.h"
#include "accelerator/registration.h"
#include "accelerator/result_shapes.h"

namespace reprise::testing::accelerator {
namespace {

using torch::jit::Stack;

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}
bool is_view(const c10::Argument& result) {
  return result.alias_info() && !result.alias_info()->isWrite();
}
bool is_of_tensors(const c10::Argument& result) {
  return result.type()->str().find("Tensor") != std::string::npos;
}

std::string name_of(const c10::FunctionSchema& schema) {
  const std::string name = schema.name().substr(schema.name().find("::") + 2);
  return schema.overload_name().empty() ? name : name + "." + schema.overload_name();
}

// Where the arguments are: on one device, or on none if there is no tensor among them.
c10::Device device_of(const Stack& arguments) {
  c10::Device found(type, current_device());
  const auto look = [&](const at::Tensor& tensor) {
    if (on_device(tensor)) found = tensor.device();
  };
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) look(argument.toTensor());
    if (argument.isTensorList())
      for (const at::Tensor& tensor : argument.toTensorVector()) look(tensor);
    if (argument.isDevice() && argument.toDevice().has_index()) found = argument.toDevice();
  }
  return found;
}

// Of the results of a kernel, those that are new.
std::vector<at::Tensor> new_tensors(const c10::FunctionSchema& schema, const Stack& results) {
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (is_written(schema.returns()[i])) continue;
    if (results[i].isTensor()) tensors.push_back(results[i].toTensor());
    if (results[i].isTensorList())
      for (const at::Tensor& tensor : results[i].toTensorVector()) tensors.push_back(tensor);
  }
  return tensors;
}

// What a kernel made in memory of its own goes to where it belongs.
void copy(const std::vector<at::Tensor>& made, const std::vector<at::Tensor>& targets, const std::string& name) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!made[i].defined() && !targets[i].defined()) continue;
    TORCH_CHECK(made[i].defined() && targets[i].defined() && made[i].sizes() == targets[i].sizes(), "[accelerator] ",
                name, " has results of other shapes than for arguments like these before");
    at::Tensor(targets[i]).copy_(made[i]);
  }
}

// A call of an operator: its arguments, off the stack, and as the kernel gets them.
class Call {
 public:
  Call(const c10::OperatorHandle& operation, Stack* stack)
      : operation_(operation),
        schema_(operation.schema()),
        given_(torch::jit::pop(*stack, schema_.arguments().size())),
        launch_(name_of(schema_), device_of(given_)) {}

  Stack run(Work work) {
    const c10::DeviceGuard guard(launch_.device());
    for (std::size_t i = 0; i < given_.size(); ++i)
      operands_.push_back(launch_.operand(given_[i], is_written(schema_.arguments()[i])));
    if (any(is_view)) return views();
    work_ = draws(work ? std::move(work) : kernel_of_cpu());
    if (!all(is_written)) return new_results();
    return has_unsized_out() ? unsized_out() : written();
  }

 private:
  template <class Test>
  [[nodiscard]] bool any(Test test) const {
    return std::any_of(schema_.returns().begin(), schema_.returns().end(), test);
  }
  template <class Test>
  [[nodiscard]] bool all(Test test) const {
    return std::all_of(schema_.returns().begin(), schema_.returns().end(), test);
  }

  [[nodiscard]] Work kernel_of_cpu() const {
    return [operation = operation_](Stack& stack) {
      operation.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    };
  }

  // With a generator of its own, for an operator that draws. The place in the device's sequence is taken here and now.
  Work draws(Work work) {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (schema_.arguments()[i].type()->str().find("Generator") == std::string::npos) continue;
      const std::uint64_t seed = next_seed(given_[i].toOptional<at::Generator>());
      return [=, work = std::move(work)](Stack& stack) {
        stack[i] = at::detail::createCPUGenerator(seed);
        work(stack);
      };
    }
    TORCH_CHECK(!operation_.hasTag(at::Tag::nondeterministic_seeded), "[accelerator] ", launch_.name(),
                " draws and has no argument for a generator");
    return work;
  }

  // ---- views: only geometry ----

  Stack views() {
    Stack stack = operands_;
    kernel_of_cpu()(stack);
    const at::Tensor& base = given_[0].toTensor();
    const auto on_base = [&](const at::Tensor& view) {
      at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(base.storage()),
                                                                 base.key_set(), view.dtype());
      made.unsafeGetTensorImpl()->set_sizes_and_strides(view.sizes(), view.strides(), view.storage_offset());
      return made;
    };
    for (c10::IValue& result : stack) {
      if (result.isTensor()) {
        result = on_base(result.toTensor());
      } else {
        c10::List<at::Tensor> list;
        for (const at::Tensor& view : result.toTensorVector()) list.push_back(on_base(view));
        result = list;
      }
    }
    return stack;
  }

  // ---- results that are arguments ----

  [[nodiscard]] const c10::IValue& argument_of(const c10::Argument& result) const {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const c10::AliasInfo* const alias = schema_.arguments()[i].alias_info();
      if (alias && *alias == *result.alias_info()) return given_[i];
    }
    TORCH_CHECK(false, "[accelerator] ", launch_.name(), " returns an argument that it does not have");
  }

  Stack written() {
    launch_.run([work = work_, stack = std::move(operands_)]() mutable { work(stack); });
    return arguments_back();
  }

  [[nodiscard]] Stack arguments_back() const {
    Stack back;
    for (const c10::Argument& result : schema_.returns()) back.push_back(argument_of(result));
    return back;
  }

  [[nodiscard]] bool is_unsized_out(std::size_t i) const {
    return schema_.arguments()[i].is_out() && given_[i].isTensor() && given_[i].toTensor().defined() &&
           given_[i].toTensor().numel() == 0;
  }
  [[nodiscard]] bool has_unsized_out() const {
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (is_unsized_out(i)) return true;
    return false;
  }

  // The kernel sizes its results: the host waits for them and makes room.
  Stack unsized_out() {
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (is_unsized_out(i)) operands_[i] = at::empty({0}, given_[i].toTensor().options().device(at::kCPU));
    const auto stack = std::make_shared<Stack>(operands_);
    launch_.run([work = work_, stack] { work(*stack); });
    launch_.wait();
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (!is_unsized_out(i)) continue;
      const at::Tensor made = operands_[i].toTensor(), &out = given_[i].toTensor();
      out.resize_(made.sizes());
      deliver({made}, {out});
    }
    return arguments_back();
  }

  // ---- new results ----

  Stack new_results() {
    if (!all(is_of_tensors) || operation_.hasTag(at::Tag::dynamic_output_shape) ||
        operation_.hasTag(at::Tag::data_dependent_output))
      return sized_by_contents();
    const std::string key = shape_key(launch_.name(), given_);
    auto shapes = known_shapes(key);
    if (!shapes) {
      shapes = tried();
      remember_shapes(key, *shapes);
    }
    return into_known(*shapes);
  }

  // The shapes of the results, from a run on copies: whatever it writes, the real one writes.
  ResultShapes tried() {
    const auto stack = std::make_shared<Stack>(operands_);
    launch_.run_besides([work = work_, stack] {
      for (c10::IValue& value : *stack) value = copy_of(value);
      work(*stack);
    });
    launch_.wait();
    return shapes_of(*stack);
  }

  Stack sized_by_contents() {
    const auto stack = std::make_shared<Stack>(std::move(operands_));
    launch_.run([work = work_, stack] { work(*stack); });
    launch_.wait();
    const std::vector<at::Tensor> made = new_tensors(schema_, *stack);
    std::vector<at::Tensor> results;
    for (const at::Tensor& tensor : made) results.push_back(Shape::of(tensor).empty(launch_.device()));
    deliver(made, results);
    return assembled(shapes_of(*stack), results, *stack);
  }

  Stack into_known(const ResultShapes& shapes) {
    std::vector<at::Tensor> results, targets;
    for (const ResultShape& result : shapes) {
      for (const Shape& shape : result.tensors) {
        results.push_back(shape.empty(launch_.device()));
        targets.push_back(launch_.operand(results.back(), true));
      }
    }
    launch_.run(
        [=, operation = operation_, work = work_, stack = std::move(operands_), name = launch_.name()]() mutable {
          work(stack);
          copy(new_tensors(operation.schema(), stack), targets, name);
        });
    return assembled(shapes, results, {});
  }

  void deliver(std::vector<at::Tensor> made, const std::vector<at::Tensor>& results) {
    std::vector<at::Tensor> targets;
    for (const at::Tensor& result : results) targets.push_back(launch_.operand(result, true));
    launch_.run_besides([made = std::move(made), targets, name = launch_.name()] { copy(made, targets, name); });
  }

  [[nodiscard]] ResultShapes shapes_of(const Stack& results) const {
    ResultShapes shapes;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (is_written(schema_.returns()[i])) continue;
      ResultShape& shape = shapes.emplace_back();
      shape.list = results[i].isTensorList();
      if (results[i].isTensor()) shape.tensors.push_back(Shape::of(results[i].toTensor()));
      if (shape.list)
        for (const at::Tensor& tensor : results[i].toTensorVector()) shape.tensors.push_back(Shape::of(tensor));
    }
    return shapes;
  }

  // The results in their order: arguments that are results, new tensors, and numbers, which are those of the kernel.
  [[nodiscard]] Stack assembled(const ResultShapes& shapes, const std::vector<at::Tensor>& tensors,
                                const Stack& numbers) const {
    Stack results;
    auto shape = shapes.begin();
    auto tensor = tensors.begin();
    for (std::size_t i = 0; i < schema_.returns().size(); ++i) {
      if (is_written(schema_.returns()[i])) {
        results.push_back(argument_of(schema_.returns()[i]));
        continue;
      }
      if (shape->list) {
        c10::List<at::Tensor> list;
        for (std::size_t j = 0; j < shape->tensors.size(); ++j) list.push_back(*tensor++);
        results.emplace_back(list);
      } else if (shape->tensors.empty()) {
        results.push_back(numbers[i]);
      } else {
        results.emplace_back(*tensor++);
      }
      ++shape;
    }
    return results;
  }

  const c10::OperatorHandle operation_;
  const c10::FunctionSchema& schema_;
  const Stack given_;
  Stack operands_;
  Work work_;
  Launch launch_;
};

void fallback(const c10::OperatorHandle& operation, Stack* stack) {
  run_on_device(operation, stack);
}

bool draws(const c10::OperatorHandle& operation) {
  const auto& arguments = operation.schema().arguments();
  return operation.hasTag(at::Tag::nondeterministic_seeded) ||
         std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
           return argument.type()->str().find("Generator") != std::string::npos;
         });
}
void fallback_that_draws_on_cpu(const c10::OperatorHandle& operation, Stack* stack) {
  if (draws(operation)) {
    at::native::cpu_fallback(operation, stack);
  } else {
    run_on_device(operation, stack);
  }
}

}  // namespace

void run_on_device(const c10::OperatorHandle& operation, Stack* stack, Work work) {
  const at::RecordFunctionGuard unseen(false);  // whatever it takes is a part of this operator
  Stack results = Call(operation, stack).run(std::move(work));
  stack->insert(stack->end(), results.begin(), results.end());
}

void register_fallback(const Like& like) {
  static auto& library =
      *new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library.fallback(like.draws_on_cpu ? torch::CppFunction::makeFromBoxedFunction<&fallback_that_draws_on_cpu>()
                                     : torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace reprise::testing::accelerator
