// Values with uninitialized bytes, found while training: they are no mismatch, and do not hide one.
#include "torch/replay/uninitialized_bytes.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <atomic>

#include "reprise/torch/session.h"
#include "torch/memory/meter.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

namespace nn = torch::nn;
using testing::difference;
using testing::evicting_everything;
using testing::gradients;
using testing::Snapshot;
using testing::snapshots;

// ---- operators that are not in the table ---------------------------------------------------------------------------

std::atomic<int> calls{0};

constexpr std::int64_t padding = 40000;  // elements: more than two blocks of a fingerprint

// The input, and after it memory that is never written.
at::Tensor padded(const at::Tensor& x) {
  at::Tensor result = at::empty({x.numel() + padding}, x.options());
  result.narrow(0, 0, x.numel()).copy_(x.reshape({-1}));
  return result;
}
// The same, but the first number depends on how often it was called.
at::Tensor counted(const at::Tensor& x) {
  at::Tensor result = padded(x);
  result.narrow(0, 0, 1).fill_(static_cast<double>(++calls % 2));
  return result;
}
// Written everywhere, with a number that comes from memory.
at::Tensor found_in_memory(const at::Tensor& x) {
  const at::Tensor found = at::empty({padding}, x.options().dtype(at::kInt));
  return x + found.remainder(1000).sum();
}
// Nothing is written: the program does it, through a pointer.
at::Tensor for_the_program(const at::Tensor& x) {
  return at::empty_like(x);
}

TORCH_LIBRARY(reprise_uninitialized, library) {
  library.def("padded(Tensor x) -> Tensor");
  library.def("counted(Tensor x) -> Tensor");
  library.def("found_in_memory(Tensor x) -> Tensor");
  library.def("for_the_program(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(reprise_uninitialized, CPU, library) {
  library.impl("padded", padded);
  library.impl("counted", counted);
  library.impl("found_in_memory", found_in_memory);
  library.impl("for_the_program", for_the_program);
}

at::Tensor call(const char* name, const at::Tensor& x) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<at::Tensor(const at::Tensor&)>().call(x);
}

// Saves the whole result of an operator, and a copy of it, and needs only the first elements.
class FirstElements : public torch::autograd::Function<FirstElements> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const std::string& name) {
    const auto whole = call(name.c_str(), x);
    context->save_for_backward({whole, whole.clone()});
    context->saved_data["sizes"] = x.sizes();
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradient) {
    const auto saved = context->get_saved_variables();
    const auto sizes = context->saved_data["sizes"].toIntVector();
    const auto first = [&](int which) {
      return saved[which].reshape({-1}).narrow(0, 0, gradient[0].numel()).view(sizes);
    };
    return {gradient[0] * first(0) + first(1), at::Tensor()};
  }
};

class UninitializedBytes : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }

  // Fills what is allocated next with this number, as far as memory is used again.
  static void use_memory(float number) {
    std::vector<at::Tensor> all;
    for (int i = 0; i < 2; ++i) all.push_back(torch::full({64 * 16 + padding}, number));
  }

  std::vector<Snapshot> step(const std::string& name) {
    linear_->zero_grad();
    use_memory(3);
    auto hidden = torch::tanh(linear_(x_));
    for (int i = 0; i < 6; ++i) hidden = torch::sin(FirstElements::apply(hidden, name));
    use_memory(5);
    hidden.sum().backward();
    return snapshots(gradients(*linear_));
  }

  nn::Linear linear_{16, 16};
  at::Tensor x_ = torch::randn({64, 16});
};

TEST_F(UninitializedBytes, OfAnOperatorThatIsNotInTheTableAndCopiesOfThemAreNoMismatch) {
  const auto expected = step("reprise_uninitialized::padded");
  Session session(evicting_everything());
  for (int i = 0; i < 3; ++i) {
    auto step_of_session = session.step();
    EXPECT_EQ(difference(expected, step("reprise_uninitialized::padded")), "");
  }
  EXPECT_TRUE(session.summary().kept.empty()) << "it is evicted and replayed like others";
}

TEST_F(UninitializedBytes, AreLookedForOnceAndThenNotCompared) {
  Session session(evicting_everything());
  std::vector<std::int64_t> replays;
  for (int i = 0; i < 4; ++i) {
    {
      auto step_of_session = session.step();
      (void)step("reprise_uninitialized::padded");
    }
    replays.push_back(session.summary().replays);
  }
  EXPECT_GT(replays[0], replays[2]);
  EXPECT_EQ(replays[3], replays[2]);
}

TEST_F(UninitializedBytes, DoNotHideWhatAnOperatorHasRemembered) {
  Session session(evicting_everything());
  auto step_of_session = session.step();
  const auto error = testing::thrown_by<MismatchError>([&] { (void)step("reprise_uninitialized::counted"); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->facts().op, "reprise_uninitialized::counted");
}

TEST_F(UninitializedBytes, ThatAnOperatorReadsAreAMismatch) {
  Session session(evicting_everything());
  auto step_of_session = session.step();
  const auto error = testing::thrown_by<MismatchError>([&] { (void)step("reprise_uninitialized::found_in_memory"); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->facts().op, "reprise_uninitialized::found_in_memory");
}

TEST_F(UninitializedBytes, ThatTheProgramFillsThroughAPointerAreAMismatch) {
  Session session(evicting_everything());
  auto step_of_session = session.step();
  const auto run = [&] {
    const auto mask = call("reprise_uninitialized::for_the_program", x_);
    for (std::int64_t i = 0; i < mask.numel(); ++i) mask.data_ptr<float>()[i] = static_cast<float>(i % 3);
    (linear_(x_) * mask).sum().backward();
  };
  EXPECT_THROW(run(), MismatchError);
}

TEST_F(UninitializedBytes, AreFoundUnderABudgetToo) {
  const auto expected = step("reprise_uninitialized::padded");
  linear_->zero_grad();
  for (const bool plan : {false, true}) {
    Session session(testing::within(meter::live() + 1'200'000, std::chrono::milliseconds(plan ? 50 : 0)));
    for (int i = 0; i < 4; ++i) {
      {
        auto step_of_session = session.step();
        EXPECT_EQ(difference(expected, step("reprise_uninitialized::padded")), "");
      }
      session.wait_for_plan();
      EXPECT_GT(session.summary().replays, 0);
    }
  }
}

// Its default driver begins with pivots from uninitialized memory.
TEST_F(UninitializedBytes, ThatLeastSquaresReadsMakeItsResultKept) {
  Session session(evicting_everything());
  for (int i = 0; i < 3; ++i) {
    auto step_of_session = session.step();
    linear_->zero_grad();
    use_memory(static_cast<float>(i));
    const auto solution = std::get<0>(torch::linalg_lstsq(torch::tanh(linear_(x_)), x_));
    use_memory(5);
    torch::sin(solution).sum().backward();
  }
  const auto kept = session.summary().kept;
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].op, "aten::linalg_lstsq");
}

// ---- the seam ------------------------------------------------------------------------------------------------------

TEST(FilledMemory, IsWhatThisThreadAllocatesWhileItLasts) {
  const auto first_byte = [] {
    const auto memory = c10::GetCPUAllocator()->allocate(100);
    const auto* const bytes = static_cast<const std::uint8_t*>(memory.get());
    for (int i = 1; i < 100; ++i) EXPECT_TRUE(bytes[i] == bytes[0]);
    return bytes[0];
  };
  const meter::FilledMemory outer(7);
  EXPECT_EQ(first_byte(), 7);
  {
    const meter::FilledMemory inner(9);
    EXPECT_EQ(first_byte(), 9);
  }
  EXPECT_EQ(first_byte(), 7);
}

}  // namespace
}  // namespace reprise
