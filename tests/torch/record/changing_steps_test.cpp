// Steps that change: what a session remembers stays bounded, and what is the same is recognised.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "reprise/torch/checkpoint.h"
#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/plans/recorded_pass_cache.h"

namespace reprise {
using namespace internal;
namespace {

using testing::options_here;

using at::Tensor;

// ---- the passes that a session knows ----

// The same one again if it has the same number, else one that never was before.
std::shared_ptr<RecordedPass> pass_of(std::int64_t arguments, std::optional<Bytes> number = std::nullopt) {
  static Bytes last = 1000;
  auto pass = std::make_shared<RecordedPass>();
  pass->recipes = std::make_shared<Recipes>();
  pass->recipes->arguments.resize(static_cast<std::size_t>(arguments));
  pass->recipes->values.push_back({.bytes = number ? *number : ++last});
  pass->recipes->outputs.push_back({.value = 0});
  return pass;
}

constexpr Bytes many_bytes = Bytes{1} << 40;

TEST(RecordedPassCache, AreBoundedInNumber) {
  RecordedPassCache known;
  for (int i = 0; i < 1000; ++i) known.add(pass_of(1), many_bytes);
  EXPECT_EQ(known.all().size(), 256u);
}

TEST(RecordedPassCache, AreBoundedInBytes) {
  RecordedPassCache known;
  const Bytes one = pass_of(1000)->bytes();
  for (int i = 0; i < 60; ++i) known.add(pass_of(1000, i % 20), 10 * one);
  EXPECT_GE(known.all().size(), 5u);
  EXPECT_LE(known.all().size(), 10u);
}

TEST(RecordedPassCache, AreFewUntilOneComesAgainThatHadToGo) {
  RecordedPassCache known;
  const Bytes one = pass_of(1000)->bytes();
  for (int i = 0; i < 20; ++i) known.add(pass_of(1000, i), 20 * one);
  EXPECT_LE(known.all().size(), 5u);
  for (int i = 0; i < 20; ++i) known.add(pass_of(1000, i), 20 * one);
  EXPECT_GE(known.all().size(), 15u);
}

TEST(RecordedPassCache, AreFewerStillWhereNoneComesAgain) {
  RecordedPassCache known;
  const Bytes one = pass_of(1000)->bytes();
  for (int i = 0; i < 100; ++i) known.add(pass_of(1000), 30 * one);
  EXPECT_LE(known.all().size(), 3u);
}

TEST(RecordedPassCache, AreBoundedInBytesAlsoWhenPlansComeLater) {
  RecordedPassCache known;
  const Bytes one = pass_of(1000)->bytes();
  for (int i = 0; i < 10; ++i) known.add(pass_of(1000), 40 * one);
  auto executable = std::make_shared<ExecutablePlan>();
  executable->last_drop.resize(100'000);
  known.all()[3]->use(executable, {});
  const Bytes most = 40 * one + executable->bytes() / 2;
  known.keep_within(most);
  Bytes bytes = 0;
  for (const auto& pass : known.all()) bytes += pass->bytes();
  EXPECT_LE(bytes, most);
}

TEST(RecordedPassCache, TheNewestTwoStayWhateverTheirBytes) {
  RecordedPassCache known;
  std::shared_ptr<RecordedPass> last, before;
  for (int i = 0; i < 5; ++i) {
    before = std::exchange(last, pass_of(1000));
    known.add(last, 1);
  }
  ASSERT_EQ(known.all().size(), 2u);
  EXPECT_EQ(known.all()[0], before);
  EXPECT_EQ(known.all()[1], last);
}

TEST(RecordedPassCache, TheOneThatIsMetAgainAndAgainStays) {
  RecordedPassCache known;
  const auto often = pass_of(1);
  known.add(often, many_bytes);
  for (int i = 0; i < 2000; ++i) {
    if (i % 20 == 0) known.met_again(*often);
    known.add(pass_of(1), many_bytes);
  }
  EXPECT_EQ(known.of(*often->recipes), often);
}

TEST(RecordedPassCache, OneOfLongAgoGoesInTheEnd) {
  RecordedPassCache known;
  const auto once = pass_of(1);
  known.add(once, many_bytes);
  for (int i = 0; i < 20; ++i) known.met_again(*once);
  for (int i = 0; i < 5000; ++i) known.add(pass_of(1), many_bytes);
  EXPECT_EQ(known.of(*once->recipes), nullptr);
}

TEST(RecordedPassCache, SomeOfACircleThatIsTooLongAreMetAgain) {
  RecordedPassCache known;
  std::vector<std::shared_ptr<RecordedPass>> circle;
  for (int i = 0; i < 400; ++i) circle.push_back(pass_of(1));
  int met = 0;
  for (int round = 0; round < 4; ++round) {
    for (const auto& pass : circle) {
      if (known.of(*pass->recipes)) {
        known.met_again(*pass);
        ++met;
      } else {
        known.add(pass, many_bytes);
      }
    }
  }
  EXPECT_GT(met, 100);
}

// ---- steps whose shapes change ----

// What malloc has given out and not got back.
std::int64_t in_use() {
  return static_cast<std::int64_t>(mallinfo2().uordblks);
}

class Net {
 public:
  Tensor loss(std::int64_t rows) const {
    Tensor h = at::ones({rows, 16});
    for (int i = 0; i < 20; ++i) h = at::dropout(at::tanh(at::matmul(h, weight_)), 0.1, true);
    return h.pow(2).mean();
  }
  void drop_gradient() { weight_.mutable_grad().reset(); }

 private:
  Tensor weight_ = at::full({16, 16}, 0.1).requires_grad_(true);
};

void expect_flat(const std::function<void(int)>& step) {
  for (int i = 0; i < 400; ++i) step(i);
  const std::int64_t before = in_use();
  for (int i = 400; i < 800; ++i) step(i);
  EXPECT_LT(in_use() - before, 4 << 20);
}

TEST(ChangingSteps, MemoryStaysFlatWhenNoShapeComesAgain) {
  REPRISE_ONLY_ON_CPU("the simulated accelerator remembers every shape");
  Net net;
  SessionOptions options = options_here();
  options.budget = 4 << 20;
  Session session(options);
  expect_flat([&](int i) {
    const auto step = session.step();
    net.loss(8 + i).backward();
    net.drop_gradient();
  });
  session.wait_for_plan();
}

TEST(ChangingSteps, MemoryStaysFlatWithoutABudget) {
  REPRISE_ONLY_ON_CPU("the simulated accelerator remembers every shape");
  Net net;
  Session session(options_here());
  expect_flat([&](int i) {
    const auto step = session.step();
    net.loss(8 + i).backward();
    net.drop_gradient();
  });
}

TEST(ChangingSteps, MemoryStaysFlatInACheckpoint) {
  REPRISE_ONLY_ON_CPU("the simulated accelerator remembers every shape");
  Net net;
  expect_flat([&](int i) {
    checkpoint([&](const Tensor& rows) { return net.loss(rows.size(0)); }, at::ones({8 + i})).backward();
    net.drop_gradient();
  });
}

TEST(ChangingSteps, ShapesThatTakeTurnsAreMetAgain) {
  Net net;
  SessionOptions options = options_here();
  options.budget = 4 << 20;
  options.planning_time = std::chrono::milliseconds(0);
  Session session(options);
  for (int i = 0; i < 300; ++i) {
    const auto step = session.step();
    net.loss(8 + i % 100).backward();
    net.drop_gradient();
  }
  // What they take in memory is a little more than the bound, and which of them goes is left to chance.
  EXPECT_LE(session.summary().traces, 210) << "after the second time most of them are known";
}

TEST(ChangingSteps, OnceTheyDifferOnlyWhatComesAgainIsPlanned) {
  Net net;
  SessionOptions options = options_here();
  options.budget = 4 << 20;
  options.planning_time = std::chrono::milliseconds(20);
  Session session(options);
  for (int i = 0; i < 60; ++i) {
    const auto step = session.step();
    net.loss(8 + i).backward();
    net.drop_gradient();
  }
  session.wait_for_plan();
  const int before = session.summary().plans;
  EXPECT_LE(before, 20) << "of 60";
  for (int i = 0; i < 2; ++i) {
    const auto step = session.step();
    net.loss(60).backward();
    net.drop_gradient();
  }
  session.wait_for_plan();
  EXPECT_EQ(session.summary().plans, before + 1);
}

// ---- lists of tensors ----

int traces_of(const std::function<Tensor(const Tensor&)>& forward) {
  SessionOptions options = options_here();
  options.budget = 64 << 20;
  options.planning_time = std::chrono::milliseconds(0);
  Session session(options);
  for (int i = 0; i < 4; ++i) {
    const auto step = session.step();
    const Tensor x = at::ones({6, 8}).requires_grad_(true);
    forward(at::tanh(x)).sum().backward();
  }
  return static_cast<int>(session.summary().traces);
}

TEST(ChangingSteps, ListsWithAConjugatedTensorAreRecognised) {
  EXPECT_EQ(traces_of([](const Tensor& x) {
              const Tensor f = at::fft_rfft(x);
              return at::view_as_real(at::cat({f.conj(), f}, 1).resolve_conj()).pow(2);
            }),
            1);
}

TEST(ChangingSteps, ListsWithANegatedTensorAreRecognised) {
  EXPECT_EQ(traces_of([](const Tensor& x) {
              const Tensor f = at::fft_rfft(x);
              return at::cat({at::imag(f.conj()), at::real(f)}, 1).pow(2);
            }),
            1);
}

TEST(ChangingSteps, ListsWithAnEmptyTensorAreRecognised) {
  EXPECT_EQ(traces_of([](const Tensor& x) {
              return at::cat({at::empty({0}), x, x.narrow(0, 0, 0), at::sin(x)}).pow(2);
            }),
            1);
}

TEST(ChangingSteps, ListsWithNoTensorInThemAreRecognised) {
  EXPECT_EQ(traces_of([](const Tensor& x) {
              c10::List<std::optional<Tensor>> where;
              where.push_back(std::nullopt);
              where.push_back(at::arange(4));
              return at::index(x, where).pow(2);
            }),
            1);
}

TEST(ChangingSteps, ListsWithATensorOfOneNumberAreRecognised) {
  EXPECT_EQ(traces_of([](const Tensor& x) { return at::stack({x.sum(), at::scalar_tensor(2.0)}).pow(2); }), 1);
}

}  // namespace
}  // namespace reprise
