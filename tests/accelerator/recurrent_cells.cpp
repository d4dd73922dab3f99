// Cells of LSTM and GRU, which LibTorch asks accelerators to compute as one kernel each. The CPU has none.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <array>
#include <vector>

#include "accelerator/operator_on_device.h"
#include "accelerator/registration.h"

namespace reprise::testing::accelerator {
namespace {

using at::Tensor;
using torch::jit::Stack;

Tensor with_bias(const Tensor& gates, const c10::IValue& bias) {
  const auto given = bias.toOptional<Tensor>();
  return given && given->defined() ? gates + *given : gates;
}
Tensor or_zeros(const c10::IValue& gradient, const Tensor& like) {
  const auto given = gradient.toOptional<Tensor>();
  return given && given->defined() ? *given : at::zeros_like(like);
}
Tensor sum_if(bool wanted, const Tensor& gradient) {
  return wanted ? gradient.sum(0) : Tensor();
}
Tensor slope_of_sigmoid(const Tensor& y) {
  return y * (1 - y);
}
Tensor slope_of_tanh(const Tensor& y) {
  return 1 - y * y;
}

// input_gates, hidden_gates, cx, input_bias, hidden_bias -> hy, cy, workspace. The workspace is for backward: the
// gates.
void lstm(Stack& stack) {
  const Tensor gates = with_bias(stack[0].toTensor(), stack[3]) + with_bias(stack[1].toTensor(), stack[4]);
  const Tensor cx = stack[2].toTensor();
  const auto part = gates.chunk(4, 1);
  const Tensor i = part[0].sigmoid(), f = part[1].sigmoid(), g = part[2].tanh(), o = part[3].sigmoid();
  const Tensor cy = f * cx + i * g;
  stack = {o * cy.tanh(), cy, at::cat({i, f, g, o}, 1)};
}

// grad_hy, grad_cy, cx, cy, workspace, has_bias -> gradients of the gates, of cx and of the bias
void lstm_backward(Stack& stack) {
  const Tensor cx = stack[2].toTensor(), cy = stack[3].toTensor();
  const auto part = stack[4].toTensor().chunk(4, 1);
  const Tensor &i = part[0], &f = part[1], &g = part[2], &o = part[3];
  const Tensor of_hy = or_zeros(stack[0], cy), t = cy.tanh();
  const Tensor of_cy = of_hy * o * slope_of_tanh(t) + or_zeros(stack[1], cy);
  const Tensor of_gates = at::cat({of_cy * g * slope_of_sigmoid(i), of_cy * cx * slope_of_sigmoid(f),
                                   of_cy * i * slope_of_tanh(g), of_hy * t * slope_of_sigmoid(o)},
                                  1);
  const bool has_bias = stack[5].toBool();
  stack = {of_gates, of_cy * f, sum_if(has_bias, of_gates)};
}

// input_gates, hidden_gates, hx, input_bias, hidden_bias -> hy, workspace: the gates, hx, and the hidden side's new
// gate
void gru(Stack& stack) {
  const auto input = with_bias(stack[0].toTensor(), stack[3]).chunk(3, 1);
  const auto hidden = with_bias(stack[1].toTensor(), stack[4]).chunk(3, 1);
  const Tensor hx = stack[2].toTensor();
  const Tensor r = (input[0] + hidden[0]).sigmoid(), z = (input[1] + hidden[1]).sigmoid();
  const Tensor n = (input[2] + r * hidden[2]).tanh();
  stack = {n + z * (hx - n), at::cat({r, z, n, hx, hidden[2]}, 1)};
}

// grad_hy, workspace, has_bias -> gradients of both gates, of hx and of both biases
void gru_backward(Stack& stack) {
  const Tensor of_hy = stack[0].toTensor();
  const auto part = stack[1].toTensor().chunk(5, 1);
  const Tensor &r = part[0], &z = part[1], &n = part[2], &hx = part[3], &hidden = part[4];
  const Tensor of_n = of_hy * (1 - z) * slope_of_tanh(n);
  const Tensor of_r = of_n * hidden * slope_of_sigmoid(r), of_z = of_hy * (hx - n) * slope_of_sigmoid(z);
  const Tensor of_input = at::cat({of_r, of_z, of_n}, 1), of_hidden = at::cat({of_r, of_z, of_n * r}, 1);
  const bool has_bias = stack[2].toBool();
  stack = {of_input, of_hidden, of_hy * z, sum_if(has_bias, of_input), sum_if(has_bias, of_hidden)};
}

template <void (*work)(Stack&)>
void on_device(const c10::OperatorHandle& operation, Stack* stack) {
  run_on_device(operation, stack, work);
}

}  // namespace

void register_recurrent_cells() {
  using torch::CppFunction;
  static auto& all =
      *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  all.impl("_thnn_fused_lstm_cell", CppFunction::makeFromBoxedFunction<&on_device<lstm>>());
  all.impl("_thnn_fused_lstm_cell_backward_impl", CppFunction::makeFromBoxedFunction<&on_device<lstm_backward>>());
  all.impl("_thnn_fused_gru_cell", CppFunction::makeFromBoxedFunction<&on_device<gru>>());
  all.impl("_thnn_fused_gru_cell_backward", CppFunction::makeFromBoxedFunction<&on_device<gru_backward>>());
}

}  // namespace reprise::testing::accelerator
