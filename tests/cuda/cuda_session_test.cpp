// Sessions on CUDA: a budget of its bytes is kept, with LibTorch's own allocator, engine and generator.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "cuda/cuda_training.h"
#include "cuda/stub_driver.h"

namespace reprise::testing {
namespace {

namespace cca = c10::cuda::CUDACachingAllocator;
using std::chrono::milliseconds;

const CudaOutcome& plain() {
  static const CudaOutcome outcome = train_on_cuda(nullptr);
  return outcome;
}

SessionOptions on_cuda(Bytes budget = no_limit) {
  SessionOptions options;
  options.device = "cuda:0";
  options.budget = budget;
  options.planning_time = milliseconds(0);
  return options;
}

class CudaSession : public ::testing::Test {
 protected:
  CudaSession() {
    (void)plain();
    empty_cuda_cache();
  }
  ~CudaSession() override {
    cca::setMemoryFraction(1.0, 0);
    at::globalContext().setDeterministicCuDNN(false);
    at::globalContext().setBenchmarkCuDNN(false);
  }
};

// ---- budgets -------------------------------------------------------------------------------------------------------

class CudaBudget : public CudaSession, public ::testing::WithParamInterface<int> {
 protected:
  // With figures for docs/devices.md: --gtest_output=xml.
  CudaOutcome train(Session& session, const std::function<void(int step)>& after_step = {}) {
    const CudaOutcome seen = train_on_cuda(&session, after_step);
    RecordProperty("budget", std::to_string(budget));
    RecordProperty("allocated", std::to_string(seen.memory.allocated_peak));
    RecordProperty("reserved", std::to_string(seen.memory.reserved_peak));
    RecordProperty("launches", std::to_string(seen.launches) + " of " + std::to_string(plain().launches));
    return seen;
  }

  const Bytes budget = plain().memory.allocated_peak * GetParam() / 100;
};

TEST_P(CudaBudget, IsKeptByTheOnlinePolicyAndAsMuchIsDrawn) {
  Session session(on_cuda(budget));
  const CudaOutcome seen = train(session);
  EXPECT_LE(seen.memory.allocated_peak, budget);
  EXPECT_GT(seen.memory.allocated_peak, budget * 9 / 10) << "it uses what it has";
  EXPECT_EQ(seen.offsets, plain().offsets);
  EXPECT_GT(session.summary().replays, 0);
  EXPECT_GT(session.summary().verified, 0) << "what is compared is read through pinned memory";
  EXPECT_GT(seen.launches, plain().launches);
  EXPECT_LT(seen.launches, plain().launches * 3 / 2);
}

TEST_P(CudaBudget, IsKeptByPlansAndAsMuchIsDrawn) {
  SessionOptions options = on_cuda(budget);
  options.planning_time = milliseconds(1000);
  Session session(options);
  const CudaOutcome seen = train(session, [&](int) { session.wait_for_plan(); });
  EXPECT_LE(seen.memory.allocated_peak, budget);
  EXPECT_EQ(seen.offsets, plain().offsets);
  EXPECT_TRUE(session.summary().followed_plan);
  EXPECT_LT(seen.launches, plain().launches * 3 / 2);
}

// By the stub's clock copies take no time. Nor do products, which its cuBLAS makes without a kernel: nothing that takes
// one is replayed.
TEST_P(CudaBudget, IsKeptWithPinnedMemoryOfTheHostBelowIt) {
  SessionOptions options = on_cuda(budget);
  options.planning_time = milliseconds(1000);
  options.host.bytes = plain().memory.allocated_peak;
  options.verify = Verify::never;  // what is compared is read through pinned memory, too
  at::getHostAllocator(at::kCUDA)->empty_cache();
  stub_mark_pinned();
  const std::uint64_t copies_before = stub_pinned_copies_beside();
  {
    Session session(options);
    const CudaOutcome seen = train(session, [&](int) { session.wait_for_plan(); });
    const Summary summary = session.summary();
    RecordProperty("host_peak", std::to_string(summary.host_peak));
    RecordProperty("host_put", std::to_string(summary.host_put_last_step));
    RecordProperty("pinned", std::to_string(stub_pinned().peak));
    EXPECT_LE(seen.memory.allocated_peak, budget);
    EXPECT_EQ(seen.offsets, plain().offsets);
    EXPECT_TRUE(summary.followed_plan);
    EXPECT_EQ(seen.launches, plain().launches);
    EXPECT_GT(summary.host_put_last_step, (plain().memory.allocated_peak - budget) / 2);
    EXPECT_EQ(summary.host_got_last_step, summary.host_put_last_step);
    EXPECT_LE(summary.host_peak, options.host.bytes);
    EXPECT_GE(static_cast<Bytes>(stub_pinned().peak), summary.host_peak) << "it is pinned";
  }
  EXPECT_GT(stub_pinned_copies_beside(), copies_before);
}

TEST_P(CudaBudget, IsAllThatIsTakenFromTheDriverWithTheMemoryFraction) {
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  cca::setMemoryFraction(static_cast<double>(budget) / static_cast<double>(total), 0);
  Session session(on_cuda(budget));
  const CudaOutcome seen = train(session);
  EXPECT_LE(seen.memory.reserved_peak, budget);
  EXPECT_EQ(seen.offsets, plain().offsets);
}

INSTANTIATE_TEST_SUITE_P(OfThePlainPeak, CudaBudget, ::testing::Values(70, 50, 35),
                         [](const auto& percent) { return std::to_string(percent.param) + "percent"; });

TEST_F(CudaSession, WithoutABudgetAllocatesLaunchesAndDrawsWhatThePlainTrainingDoes) {
  Session session(on_cuda());
  const CudaOutcome seen = train_on_cuda(&session);
  EXPECT_EQ(seen.memory.allocated_peak, plain().memory.allocated_peak);
  EXPECT_EQ(seen.offsets, plain().offsets);
  EXPECT_EQ(seen.launches, plain().launches);
}

TEST_F(CudaSession, GoesOnAfterABudgetThatIsTooSmall) {
  Session session(on_cuda(plain().memory.allocated_peak / 20));
  try {
    (void)train_on_cuda(&session);
    FAIL() << "it cannot fit";
  } catch (const BudgetError& error) {
    EXPECT_EQ(error.facts().device, "cuda:0");
    EXPECT_NE(std::string(error.what()).find("on cuda:0"), std::string::npos) << error.what();
  }
  const Bytes budget = plain().memory.allocated_peak / 2;
  session.budget(budget);
  const CudaOutcome seen = train_on_cuda(&session);
  EXPECT_LE(seen.memory.allocated_peak, budget);
  EXPECT_EQ(seen.offsets, plain().offsets);
}

TEST_F(CudaSession, GoesOnAfterTheDriverHasRefused) {
  const Bytes budget = plain().memory.allocated_peak;
  Session session(on_cuda(budget));
  stub_set_memory(stub_memory_in_use() + (std::size_t{64} << 20));
  try {
    (void)train_on_cuda(&session);
    FAIL() << "it cannot fit";
  } catch (const BudgetError& error) {
    EXPECT_NE(error.facts().refused.find("out of memory"), std::string::npos) << error.facts().refused;
  }
  stub_set_memory(std::size_t{16} << 30);
  EXPECT_EQ(train_on_cuda(&session).offsets, plain().offsets);
}

TEST_F(CudaSession, ReadsWhatIsComparedThroughPinnedMemory) {
  SessionOptions options = on_cuda(plain().memory.allocated_peak / 2);
  options.verify = Verify::always;
  Session session(options);
  const std::uint64_t copies_before = stub_pinned_copies();
  EXPECT_EQ(train_on_cuda(&session).offsets, plain().offsets);
  EXPECT_GT(session.summary().verified, 0);
  EXPECT_GE(stub_pinned_copies() - copies_before, static_cast<std::uint64_t>(session.summary().verified));
  EXPECT_GT(stub_pinned().bytes, 0u);
}

TEST_F(CudaSession, RefusesADeviceThatIsNotThere) {
  SessionOptions options;
  options.device = "cuda:7";
  EXPECT_THROW(Session{options}, BadOption);
}

// ---- what steps pin ------------------------------------------------------------------------------------------------

TEST_F(CudaSession, HasDeterministicConvolutionsWhileStepsAreOpen) {
  at::Context& context = at::globalContext();
  context.setBenchmarkCuDNN(true);
  Session session(on_cuda());
  for (int i = 0; i < 2; ++i) {
    {
      const auto step = session.step();
      EXPECT_TRUE(context.deterministicCuDNN());
      EXPECT_FALSE(context.benchmarkCuDNN());
    }
    EXPECT_FALSE(context.deterministicCuDNN());
    EXPECT_TRUE(context.benchmarkCuDNN());
  }
}

// ---- graphs --------------------------------------------------------------------------------------------------------

// What this thread gives to the current stream, which is not the default one, becomes a part of a graph meanwhile.
class Capture {
 public:
  Capture() { EXPECT_EQ(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), cudaSuccess); }
  ~Capture() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream(), &graph), cudaSuccess);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  [[nodiscard]] static cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream(); }
};

SessionOptions evicting() {
  SessionOptions options = on_cuda();
  options.evict_everything = true;
  return options;
}

TEST_F(CudaSession, RecordsNothingWhileAGraphIsCaptured) {
  const c10::cuda::CUDAStreamGuard on(c10::cuda::getStreamFromPool());
  Session session(evicting());
  const at::Tensor weight = torch::zeros({64, 64}, cuda()).requires_grad_();
  const auto step = session.step();
  torch::tanh(torch::mm(weight, weight).sigmoid()).sum().backward();
  const std::int64_t before = session.summary().replays;
  EXPECT_GT(before, 0);
  const Capture capture;
  torch::tanh(torch::mm(weight, weight).sigmoid()).sum().backward();
  EXPECT_EQ(session.summary().replays, before);
}

TEST_F(CudaSession, DoesNotReplayIntoAGraph) {
  const c10::cuda::CUDAStreamGuard on(c10::cuda::getStreamFromPool());
  Session session(evicting());
  const at::Tensor weight = torch::zeros({64, 64}, cuda()).requires_grad_();
  const auto step = session.step();
  const at::Tensor loss = torch::tanh(torch::mm(weight, weight).sigmoid()).sum();
  {
    const Capture capture;
    try {
      loss.backward();
      FAIL() << "what it needs is evicted";
    } catch (const SessionError& error) {
      EXPECT_NE(std::string(error.what()).find("a graph is being captured on cuda:0"), std::string::npos)
          << error.what();
    }
  }
  EXPECT_NO_THROW(torch::tanh(torch::mm(weight, weight).sigmoid()).sum().backward());
}

// A copy of what is about to be overwritten would be made whenever the graph runs, and not now.
TEST_F(CudaSession, CopiesNothingForAGraphThatWrites) {
  const c10::cuda::CUDAStreamGuard on(c10::cuda::getStreamFromPool());
  Session session(evicting());
  const at::Tensor weight = torch::zeros({64, 64}, cuda()).requires_grad_();
  for (const bool captured : {false, true}) {
    const at::Tensor input = torch::zeros({64, 64}, cuda());
    const auto step = session.step();
    const at::Tensor loss = torch::tanh(torch::mm(input, weight).sigmoid()).sum();
    std::optional<Capture> capture;
    if (captured) capture.emplace();
    const Bytes before = cuda_memory().allocated;
    input.zero_();
    EXPECT_EQ(cuda_memory().allocated - before, captured ? 0 : static_cast<Bytes>(input.nbytes()));
  }
}

}  // namespace
}  // namespace reprise::testing
