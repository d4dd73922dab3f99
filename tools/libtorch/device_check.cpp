#include "libtorch/device_check.h"

#include <ATen/DeviceAccelerator.h>
#include <torch/torch.h>

#include <optional>

#include "reprise/torch/session.h"

namespace reprise::tools {
namespace {

using torch::Tensor;

// Of three steps, on the host. Nothing is drawn on the device: not every one has a generator.
std::vector<Tensor> gradients(c10::Device device, Session* session) {
  constexpr std::int64_t rows = 64, width = 64;
  torch::manual_seed(1);
  std::vector<Tensor> weights;
  for (int i = 0; i < 4; ++i) weights.push_back((torch::randn({width, width}) * 0.1).to(device).requires_grad_());
  const Tensor x = torch::randn({rows, width}).to(device);
  std::vector<Tensor> all;
  for (int i = 0; i < 3; ++i) {
    {
      std::optional<Step> step;
      if (session) step.emplace(session->step());
      Tensor h = x;
      for (const Tensor& weight : weights) h = torch::tanh(h.matmul(weight)) * h.sigmoid();
      h.pow(2).mean().backward();
    }
    for (const Tensor& weight : weights) all.push_back(weight.grad().cpu());
  }
  return all;
}

// A session copies there and back when it begins, to know what that takes. Empty: it could.
std::string why_no_host_below(SessionOptions options) try {
  options.host.bytes = Bytes{16} << 20;
  const Session session(std::move(options));
  return "";
} catch (const BadOption& error) {
  return error.what();
}

}  // namespace

std::vector<c10::Device> accelerators() {
  std::vector<c10::Device> all;
  const auto type = at::accelerator::getAccelerator();
  if (!type) return all;
  for (c10::DeviceIndex i = 0; i < at::accelerator::deviceCount(); ++i) all.emplace_back(*type, i);
  return all;
}

DeviceCheck check_device(c10::Device device) {
  DeviceCheck check;
  SessionOptions options;
  options.device = device.str();
  options.evict_everything = true;
  options.verify = Verify::always;
  options.planning_time = std::chrono::milliseconds(0);
  std::optional<Session> session;
  try {
    session.emplace(options);
  } catch (const BadOption& error) {
    check.why_not_counted = error.what();
    return check;
  }
  try {
    const auto expected = gradients(device, nullptr), seen = gradients(device, &*session);
    check.exact = expected.size() == seen.size();
    for (std::size_t i = 0; check.exact && i < seen.size(); ++i) check.exact = torch::equal(expected[i], seen[i]);
    check.replays = session->summary().replays;
    check.why_no_host = why_no_host_below(options);
  } catch (const std::exception& error) {
    check.failure = error.what();
  }
  return check;
}

}  // namespace reprise::tools
