#include "torch/here.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "torch/libtorch/libtorch.h"
#include "torch/memory/counted_device.h"

namespace reprise::testing {
using namespace internal;
namespace {

constinit TakePlace take_device = nullptr;

void engine_has_threads(bool has) {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(has);
}

// Before the first test makes a tensor.
class Begin : public ::testing::Environment {
 public:
  void SetUp() override {
    if (!here().is_cpu()) engine_has_threads(false);
  }
};
const auto* const before_tests = ::testing::AddGlobalTestEnvironment(new Begin);

}  // namespace

void here_is(TakePlace take) {
  take_device = take;
}

const CountedDevice& here() {
  static const CountedDevice& device =
      take_device ? CountedDevices::of_process().at(take_device().str()) : CountedDevices::of_process().cpu();
  return device;
}

SessionOptions options_here() {
  SessionOptions options;
  if (!here().is_cpu()) options.device = here().name();
  return options;
}

at::Tensor to_here(const at::Tensor& tensor) {
  return tensor.to(here().device());
}

at::Generator default_generator_here() {
  return libtorch::default_generator(here().device());
}

at::Generator generator_here(std::uint64_t seed) {
  at::Generator generator = libtorch::new_generator(here().device());
  generator.set_current_seed(seed);
  return generator;
}

Bytes counted_here(std::size_t n) {
  return here().is_cpu() ? meter::counted(n) : static_cast<Bytes>((n + 511) / 512 * 512);
}

void write_behind(const at::Tensor& tensor, std::int64_t element, float number) {
  if (tensor.is_cpu()) {
    tensor.mutable_data_ptr<float>()[element] = number;
    return;
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::RecordFunctionGuard unseen(false);
  tensor.flatten().select(0, element).fill_(number);
}

void settle_here() {
  if (here().is_cpu()) return;
  const c10::Device device = here().device();
  for (bool threw = true; threw;) {  // each of its streams may have thrown
    try {
      c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
      threw = false;
    } catch (const std::exception&) {
    }
  }
}

OnThreadsOfTheEngine::OnThreadsOfTheEngine() {
  if (!here().is_cpu()) engine_has_threads(true);
}

// A thread of the engine's comes to the next graph when it has nothing of the last one; this one allocates nothing.
OnThreadsOfTheEngine::~OnThreadsOfTheEngine() {
  if (here().is_cpu()) return;
  static const at::Tensor leaf = at::ones({1}).requires_grad_(), one = at::ones({1});
  if (!leaf.grad().defined()) leaf.mutable_grad() = at::zeros({1});
  leaf.view({1}).backward(one);
  engine_has_threads(false);
}

}  // namespace reprise::testing
