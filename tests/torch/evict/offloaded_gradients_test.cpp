// Gradients that wait on disk until backward is over: budgets that are too small for all of them beside everything
// else.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "reprise/store/store.h"
#include "reprise/torch/session.h"
#include "store/store_support.h"
#include "torch/memory/meter.h"
#include "torch/offload/disk_settings.h"
#include "torch/small_training.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using testing::difference;
using testing::FileOperation;
using testing::Snapshot;
using testing::snapshots;
using testing::TemporaryFolder;
using testing::thrown_by;
using testing::WatchedFiles;
using testing::within;

// What is wide comes first, so that backward comes to it last, when there are all gradients of the deep part.
class OffloadedGradient : public ::testing::Test {
 protected:
  static constexpr std::int64_t rows = 96, width = 192, times = 8, layers = 6;

  void SetUp() override {
    torch::manual_seed(5);
    parameters_.push_back(at::full({1}, 0.7f));
    for (int i = 0; i < layers; ++i) parameters_.push_back(at::randn({width, width}) * 0.07);
    for (const at::Tensor& parameter : parameters_) parameter.requires_grad_(true);
    input_ = at::randn({rows, times * width});
    expected_ = step();
    twice_ = step();
    drop_gradients();
    level_ = internal::meter::live();
    internal::meter::mark_peak();
    (void)step();
    peak_ = internal::meter::peak();
    drop_gradients();
  }

  at::Tensor loss() {
    at::Tensor h = torch::sigmoid(torch::tanh(input_ * parameters_[0])).view({rows, times, width}).sum(1);
    h.register_hook([this](const at::Tensor&) { before_wide_part_(); });
    for (int i = 1; i <= layers; ++i) h = torch::tanh(h.matmul(parameters_[i]));
    return h.sum();
  }
  std::vector<Snapshot> results() {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    return snapshots(gradients);
  }
  std::vector<Snapshot> step() {
    loss().backward();
    return results();
  }
  void drop_gradients() {
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
  }

  void set_gradients_to_zero() {
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad() = at::zeros_like(parameter);
  }

  // Where gradients have to wait, and nothing else is missing.
  SessionOptions options(double share = 0.75, std::chrono::milliseconds planning_time = std::chrono::milliseconds(0)) {
    SessionOptions options =
        within(level_ + static_cast<Bytes>(share * static_cast<double>(peak_ - level_)), planning_time);
    options.planning_share = std::numeric_limits<double>::infinity();
    options.disk = {.folder = folder_.path()};
    return options;
  }
  void train(Session& session) {
    {
      auto open = session.step();
      EXPECT_EQ(difference(expected_, step()), "");
    }
    drop_gradients();
    EXPECT_LE(session.summary().peak_last_step(), session.budget());
  }
  // A step that is to fail. Look: all gradients that were there are there afterwards.
  enum class Afterwards { evict, look };
  template <class Error>
  std::optional<Error> fail(Session& session, Afterwards afterwards = Afterwards::evict) {
    auto error = thrown_by<Error>([&] {
      auto open = session.step();
      (void)step();
    });
    if (afterwards == Afterwards::look) {
      const std::vector<Snapshot> deep(expected_.begin() + 1, expected_.end());
      std::vector<at::Tensor> gradients;
      for (int i = 1; i <= layers; ++i) gradients.push_back(parameters_[i].grad());
      EXPECT_EQ(difference(deep, snapshots(gradients)), "");
    }
    drop_gradients();
    return error;
  }

  std::vector<at::Tensor> parameters_;
  at::Tensor input_;
  std::function<void()> before_wide_part_ = [] {};  // of backward
  std::vector<Snapshot> expected_, twice_;          // after one step, and after two
  Bytes level_ = 0, peak_ = 0;
  TemporaryFolder folder_;
  WatchedFiles files_;
  const internal::DiskOfTest disk_{&files_};
};

TEST_F(OffloadedGradient, MakesASmallerBudgetDo) {
  SessionOptions without = options();
  without.disk = {};
  Session failing(without);
  EXPECT_TRUE(fail<BudgetError>(failing).has_value());
  for (const int milliseconds : {0, 300}) {
    Session session(options(0.75, std::chrono::milliseconds(milliseconds)));
    for (int i = 0; i < 5; ++i) {
      train(session);
      session.wait_for_plan();
      EXPECT_GT(session.summary().disk_got_last_step, 0);
    }
    EXPECT_EQ(session.summary().followed_plan, milliseconds > 0);
  }
  EXPECT_EQ(files_.bytes(), 0);
}

TEST_F(OffloadedGradient, IsTheSameTensorAfterwardsWithWhatWasInItBefore) {
  set_gradients_to_zero();
  std::vector<const c10::TensorImpl*> before;
  for (const at::Tensor& parameter : parameters_) before.push_back(parameter.grad().unsafeGetTensorImpl());
  Session session(options(0.9));
  auto open = session.step();
  loss().backward();
  EXPECT_EQ(difference(twice_, step()), "");
  EXPECT_GT(session.summary().disk_got_last_step, 0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(parameters_[i].grad().unsafeGetTensorImpl(), before[i]) << i;
  }
}

TEST_F(OffloadedGradient, IsNoneThatTheProgramHasAHandleOn) {
  Session session(options());
  train(session);
  std::vector<at::Tensor> handles;
  before_wide_part_ = [&] {
    for (const at::Tensor& parameter : parameters_) handles.push_back(parameter.grad());
  };
  EXPECT_TRUE(fail<BudgetError>(session).has_value());
}

struct Told final : torch::autograd::FunctionPostHook {
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    return outputs;
  }
};

TEST_F(OffloadedGradient, IsNoneThatAHookOfTheProgramSees) {
  std::vector<decltype(torch::autograd::impl::grad_accumulator({}))> accumulators;
  for (const at::Tensor& parameter : parameters_) {
    accumulators.push_back(torch::autograd::impl::grad_accumulator(parameter));
    accumulators.back()->add_post_hook(std::make_unique<Told>());
  }
  Session session(options());
  EXPECT_TRUE(fail<BudgetError>(session).has_value());
}

// Allocates in backward while it has a reference to a gradient, which is no handle.
struct Reading : torch::autograd::Function<Reading> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * 2; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    const at::Tensor& reference = of->grad();
    const void* const before = reference.defined() ? reference.data_ptr() : nullptr;
    at::Tensor result = gradients[0] * 2;
    const at::Tensor more = at::empty({most}, at::kByte);  // all the room there is without gradients
    EXPECT_EQ(before ? reference.data_ptr() : nullptr, before);
    seen += before != nullptr;
    return {result};
  }
  static const at::Tensor* of;
  static Bytes most;
  static int seen;
};
const at::Tensor* Reading::of = nullptr;
Bytes Reading::most = 0;
int Reading::seen = 0;

TEST_F(OffloadedGradient, IsNotTakenWhileCodeOfTheProgramRuns) {
  Session session(options(1.5));
  const auto step_with_reader = [&] {
    auto open = session.step();
    const at::Tensor h = Reading::apply(input_ * parameters_[0]);
    at::Tensor sum = h.view({rows, times, width}).sum(1);
    for (int i = 1; i <= layers; ++i) sum = torch::tanh(sum.matmul(parameters_[i]));
    sum.sum().backward();
  };
  Reading::of = &parameters_[2];
  Reading::seen = 0;
  Reading::most = 1;
  step_with_reader();
  drop_gradients();
  EXPECT_EQ(Reading::seen, 1);
  Reading::most = session.budget() - level_ - static_cast<Bytes>(sizeof(float)) * rows * width * times;
  EXPECT_TRUE(thrown_by<BudgetError>(step_with_reader).has_value());
}

// ---- faults --------------------------------------------------------------------------------------------------------

TEST_F(OffloadedGradient, IsBackAfterAnErrorInBackward) {
  Session session(options());
  bool waited = false;
  parameters_[0].register_hook([&](const at::Tensor&) {
    waited = files_.bytes() > 0;
    throw std::runtime_error("a hook has failed");
  });
  EXPECT_TRUE(fail<std::runtime_error>(session, Afterwards::look).has_value());
  EXPECT_TRUE(waited);
}

TEST_F(OffloadedGradient, ThatIsLostIsAnErrorAndTheNextStepIsAsEver) {
  Session session(options());
  files_.before = [](FileOperation operation, const fs::path& path) {
    if (operation == FileOperation::read) throw FileError("read", path, EIO);
  };
  const auto error = fail<DiskError>(session);
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(std::string(error->what()).find("read"), std::string::npos) << error->what();
  files_.before = [](auto, auto&) {};
  train(session);
}

TEST_F(OffloadedGradient, StaysWhereItIsIfNothingCanBeWritten) {
  Session session(options());
  files_.before = [](FileOperation operation, const fs::path& path) {
    if (operation == FileOperation::write) throw FileError("write", path, ENOSPC);
  };
  EXPECT_TRUE(fail<BudgetError>(session, Afterwards::look).has_value());
  files_.before = [](auto, auto&) {};
  train(session);
}

}  // namespace
}  // namespace reprise
