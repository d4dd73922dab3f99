#include "torch/rerun.h"

#include <ATen/CPUGeneratorImpl.h>

namespace reprise::testing {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Parameters are leaves of the inner graph: its backward accumulates their gradients itself.
struct Rerun : torch::autograd::Function<Rerun> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            std::function<at::Tensor(at::Tensor)> function) {
    context->save_for_backward({x});
    context->saved_data["generator"] = at::detail::getDefaultCPUGenerator().get_state();
    at::Tensor y;
    {
      at::NoGradGuard no_grad;
      y = function(x);
    }
    context->saved_data["function"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(std::move(function)));
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    at::AutoGradMode with_grad(true);
    auto generator = at::detail::getDefaultCPUGenerator();
    const at::Tensor now = generator.get_state();
    generator.set_state(context->saved_data["generator"].toTensor());
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    const at::Tensor y =
        c10::static_intrusive_pointer_cast<Holder>(context->saved_data["function"].toCapsule())->function(x);
    generator.set_state(now);
    y.backward(gradients[0]);
    return {x.grad(), at::Tensor()};
  }

  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::function<at::Tensor(at::Tensor)> function_) : function(std::move(function_)) {}
    std::function<at::Tensor(at::Tensor)> function;
  };
};

}  // namespace

at::Tensor rerun_in_backward(std::function<at::Tensor(at::Tensor)> function, const at::Tensor& x) {
  return Rerun::apply(x, std::move(function));
}

}  // namespace reprise::testing
