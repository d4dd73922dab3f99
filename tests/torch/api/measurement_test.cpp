// Steps that are measured without the memory that they need.
#include "reprise/torch/measurement.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <string>

#include "reprise/plan/curve.h"
#include "torch/memory/meter.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::difference;
using testing::SmallTraining;
using testing::thrown_by;

// Physical memory of this process: pages that are mapped several times count once.
Bytes physical() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    if (word != "Pss:") continue;
    Bytes kilobytes = 0;
    file >> kilobytes;
    return kilobytes << 10;
  }
  return 0;
}

// Of a plain step, really run and recorded.
std::pair<Trace, Bytes> real(const std::function<void()>& train) {
  Session session({.pack = false});
  for (int i = 0; i < 2; ++i) {
    auto step = session.step();
    train();
  }
  return {session.trace().value(), session.summary().peak_last_step()};
}

void expect_same_but_costs(const Trace& measured, const Trace& real) {
  ASSERT_EQ(measured.moment_count(), real.moment_count());
  ASSERT_EQ(measured.value_count(), real.value_count());
  for (Id m = 0; m < real.moment_count(); ++m) {
    EXPECT_EQ(measured.label(m), real.label(m));
    EXPECT_EQ(measured.inputs(m), real.inputs(m));
    EXPECT_EQ(measured.outputs(m), real.outputs(m));
    EXPECT_EQ(measured.moments[m].other, real.moments[m].other) << real.label(m);
    EXPECT_EQ(measured.workspace(m), real.workspace(m)) << real.label(m);
    EXPECT_EQ(measured.replayable(m), real.replayable(m)) << real.label(m);
  }
  for (Id v = 0; v < real.value_count(); ++v) EXPECT_EQ(measured.values[v], real.values[v]) << v;
}

class MeasuredStep : public ::testing::Test {
 protected:
  const Session session_;
};

TEST_F(MeasuredStep, HasTheTraceAndThePeakOfARealOne) {
  SmallTraining training;
  const auto train = [&] {
    (void)training.loss(2048).backward();
    training.drop_gradients();
  };
  train();
  const Measurement measured = session_.measure(train);
  const auto [trace, peak] = real(train);
  EXPECT_EQ(measured.peak, peak);
  EXPECT_GT(measured.seconds, 0);
  expect_same_but_costs(measured.trace, trace);
  EXPECT_GT(measured.trace.total_cost(), 0);
  CurveOptions options;
  options.points = 3;
  options.time_limit = std::chrono::milliseconds(200);
  const Curve curve = make_curve(measured.trace, options);
  EXPECT_EQ(curve.keep_everything_peak, keep_everything(trace).budget);
}

TEST_F(MeasuredStep, DoesNotNeedTheMemory) {
  SmallTraining training(6, 256);
  const Bytes before = meter::live();
  const Measurement measured = session_.measure([&] {
    const Bytes at_first = physical();
    ASSERT_GT(at_first, 0);
    at::Tensor loss = training.loss(1 << 16);
    const Bytes live = meter::live();
    const Bytes more = physical() - at_first;
    loss.backward();
    if (more > live / 4) throw std::runtime_error("it took " + std::to_string(more) + " of " + std::to_string(live));
  });
  EXPECT_GT(measured.peak, Bytes{1} << 30);
  EXPECT_EQ(meter::live(), before);
}

TEST_F(MeasuredStep, ChangesNothing) {
  SmallTraining training;
  torch::optim::Adam optimizer(training.model()->parameters(), torch::optim::AdamOptions(0.01));
  (void)training.step();
  optimizer.step();
  (void)training.step();  // gradients that are there
  const auto everything = [&] {
    std::vector<at::Tensor> tensors = training.model()->parameters();
    for (const at::Tensor& parameter : training.model()->parameters()) tensors.push_back(parameter.grad());
    for (const auto& [key, state] : optimizer.state()) {
      const auto& adam = static_cast<const torch::optim::AdamParamState&>(*state);
      tensors.push_back(adam.exp_avg());
      tensors.push_back(torch::tensor(adam.step()));
    }
    tensors.push_back(at::detail::getDefaultCPUGenerator().get_state());
    for (at::Tensor& tensor : tensors) tensor = tensor.detach().clone();
    return tensors;
  };
  const auto before = everything();
  (void)session_.measure([&] {
    optimizer.zero_grad();
    training.loss().backward();
    optimizer.step();
  });
  const auto after = everything();
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(torch::equal(before[i], after[i])) << i;
}

TEST_F(MeasuredStep, MayHaveIndicesPoolsAndNormalisations) {
  torch::nn::Sequential cnn(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3).padding(1)),
                            torch::nn::BatchNorm2d(16), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
                            torch::nn::Dropout(0.5), torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).padding(1)),
                            torch::nn::MaxPool2d(2), torch::nn::Flatten(), torch::nn::Linear(32 * 8 * 8, 10));
  torch::nn::Embedding embedding(100, 64);
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(64, 64).batch_first(true));
  const auto train = [&] {
    const auto target = torch::randint(10, {64});
    const auto loss = torch::nn::functional::cross_entropy(cnn->forward(torch::randn({64, 3, 32, 32})), target);
    const auto words = std::get<0>(lstm->forward(embedding->forward(torch::randint(100, {256, 64}))));
    const auto best = std::get<0>(words.topk(8, 1));
    (loss + best.gather(1, torch::randint(8, {256, 8, 64})).mean()).backward();
    cnn->zero_grad();
    embedding->zero_grad();
    lstm->zero_grad();
  };
  train();
  const Measurement measured = session_.measure(train);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // convolutions have a workspace for each
  const auto [trace, peak] = real(train);
  at::set_num_threads(threads);
  EXPECT_EQ(measured.peak, peak);
  expect_same_but_costs(measured.trace, trace);
}

// ---- what cannot be measured ---------------------------------------------------------------------------------------

std::string refusal(const Session& session, const std::function<void()>& train) {
  const auto error = thrown_by<MeasurementError>([&] { (void)session.measure(train); });
  return error ? error->what() : "";
}

::testing::AssertionResult has(const std::string& text, const std::string& words) {
  return ::testing::AssertionResult(text.find(words) != std::string::npos) << text;
}

TEST_F(MeasuredStep, NamesTheOperatorThatReadsWhatIsInAFakeTensor) {
  SmallTraining training;
  const auto item = [&] { (void)training.loss(4096).item<float>(); };
  EXPECT_TRUE(has(refusal(session_, item), "operator aten::_local_scalar_dense tells the program"));
  const auto nonzero = [&] { (void)torch::randn({512, 512}).nonzero(); };
  EXPECT_TRUE(has(refusal(session_, nonzero), "operator aten::nonzero tells the program"));
}

TEST_F(MeasuredStep, MayAskForWhatWasThereBefore) {
  SmallTraining training;
  const at::Tensor known = torch::full({4}, 3.0);
  const Measurement measured = session_.measure([&] {
    const at::Tensor loss = training.loss();
    if (known.sum().item<float>() != 12) throw std::runtime_error("not what it was");
    loss.backward();
  });
  EXPECT_GT(measured.trace.moment_count(), 0);
}

TEST_F(MeasuredStep, ReportsTheErrorsOfTheFunction) {
  EXPECT_TRUE(has(refusal(session_, [] { throw std::runtime_error("mine"); }), "mine"));
  EXPECT_TRUE(has(refusal(session_, [] { throw 7; }), "no std::exception"));
  EXPECT_TRUE(has(refusal(session_, [] { std::raise(SIGSEGV); }), "signal 11"));
  EXPECT_TRUE(has(refusal(session_, [] { ::_exit(0); }), "ended the process"));
  EXPECT_TRUE(has(refusal(session_, [] {}), "no backward"));
}

TEST_F(MeasuredStep, IsNoPartOfAnotherStep) {
  Session session;
  const auto step = session.step();
  EXPECT_TRUE(thrown_by<BadOption>([&] { (void)session.measure([] {}); }));
}

}  // namespace
}  // namespace reprise
