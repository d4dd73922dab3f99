// A disk below the memory of a session: the same bits within smaller budgets, whatever happens to its files.
#include <gtest/gtest.h>
#include <torch/library.h>

#include <fstream>
#include <new>

#include "reprise/store/store.h"
#include "reprise/torch/session.h"
#include "store/store_support.h"
#include "support/child.h"
#include "torch/memory/meter.h"
#include "torch/offload/disk_settings.h"
#include "torch/small_training.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using testing::difference;
using testing::FileOperation;
using testing::SmallTraining;
using testing::Snapshot;
using testing::snapshots;
using testing::soon;
using testing::TemporaryFolder;
using testing::thrown_by;
using testing::WatchedFiles;
using testing::within;

class Disks : public ::testing::Test {
 protected:
  // Whatever would be evicted goes to disk.
  SessionOptions eager(Bytes budget, std::chrono::milliseconds planning_time = std::chrono::milliseconds(0)) {
    SessionOptions options = within(budget, planning_time);
    options.planning_share = std::numeric_limits<double>::infinity();
    options.disk = {.folder = folder_.path()};
    return options;
  }

  void train(Session& session) {
    {
      auto step = session.step();
      EXPECT_EQ(difference(training_.expected(), training_.step()), "");
      training_.drop_gradients();
    }
    EXPECT_LE(session.summary().peak_last_step(), session.budget());
  }

  // Fails the operation of this number, counted from now on.
  void fail_at(int number) {
    countdown_ = number;
    files_.before = [this](FileOperation, const fs::path& path) {
      if (countdown_-- == 0) throw FileError("use", path, EIO);
    };
  }
  void fail_never() { countdown_ = -1; }

  SmallTraining training_{8, 64, 256};
  TemporaryFolder folder_;
  WatchedFiles files_;
  const internal::DiskOfTest disk_{&files_, true};
  std::atomic<int> countdown_ = -1;
};

TEST_F(Disks, ServeTheOnlinePolicy) {
  Session session(eager(training_.budget(0.5)));
  for (int i = 0; i < 3; ++i) {
    train(session);
    const Summary summary = session.summary();
    EXPECT_GT(summary.disk_put_last_step, 0);
    EXPECT_GT(summary.disk_got_last_step, 0);
    EXPECT_GT(summary.disk_seconds, 0);
    EXPECT_EQ(summary.disk_failures, 0);
    EXPECT_EQ(summary.replays, 0) << "files are free";
  }
}

TEST_F(Disks, AreInThePlanAndServeIt) {
  Session session(eager(training_.budget(0.5), soon));
  for (int i = 0; i < 6 && !session.summary().followed_plan; ++i) {
    train(session);
    session.wait_for_plan();
  }
  ASSERT_TRUE(session.summary().followed_plan);
  const Trace trace = session.trace().value();
  ASSERT_FALSE(trace.tiers.empty());
  EXPECT_EQ(trace.tiers.back().name, "disk");
  EXPECT_FALSE(trace.tiers.back().in_budget);
  EXPECT_GT(session.summary().disk_put_last_step, 0);
  EXPECT_GT(session.summary().disk_got_last_step, 0);
  const std::int64_t divergences = session.summary().divergences;
  for (int i = 0; i < 5; ++i) train(session);
  EXPECT_EQ(session.summary().divergences, divergences);
}

TEST_F(Disks, AreEmptyBetweenStepsAndGoneAfterTheSession) {
  {
    Session session(eager(training_.budget(0.4)));
    train(session);
    EXPECT_GT(files_.peak(), 0);
  }
  EXPECT_EQ(files_.bytes(), 0);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(Disks, AreClearedOfWhatAKilledProcessLeft) {
  const int code = testing::in_child([this] {
    Session session(eager(training_.budget(0.4)));
    files_.before = [this](FileOperation operation, const fs::path&) {
      if (operation == FileOperation::open) ::_exit(7);  // in the middle of backward
    };
    train(session);
    return 0;
  });
  EXPECT_EQ(code, 7);
  EXPECT_FALSE(fs::is_empty(folder_.path()));
  { Session session(eager(training_.budget(0.4))); }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(Disks, MayForkInTheMiddleOfAStep) {
  Session session(eager(training_.budget(0.4)));
  train(session);
  int code = -1;
  {
    auto step = session.step();
    const at::Tensor loss = training_.loss();
    const auto finish = [&] {
      loss.backward();
      std::vector<Snapshot> results = snapshots(testing::gradients(*training_.model(), {loss}));
      results.push_back(testing::generator_snapshot());
      return difference(training_.expected(), results);
    };
    code = testing::in_child([&] { return finish().empty() ? 0 : 1; });
    EXPECT_EQ(finish(), "");
  }
  EXPECT_EQ(code, 0);
}

// ---- faults --------------------------------------------------------------------------------------------------------

TEST_F(Disks, MayFailInAnyOperationOfAStepAndTheBitsAreTheSame) {
  for (const bool planned : {false, true}) {
    Session session(eager(training_.budget(0.5), planned ? soon : std::chrono::milliseconds(0)));
    for (int i = 0; i < 3; ++i) {
      train(session);
      session.wait_for_plan();
    }
    int failures = 0;
    for (int number = 0;; ++number) {
      SCOPED_TRACE("operation " + std::to_string(number) + (planned ? ", planned" : ""));
      fail_at(number);
      train(session);
      session.wait_for_plan();
      const bool reached = countdown_ < 0;
      fail_never();
      if (!reached) break;
      ++failures;
    }
    EXPECT_GT(failures, 20);
    EXPECT_GT(session.summary().disk_failures, 0);
    train(session);
  }
}

TEST_F(Disks, MayBeFull) {
  SessionOptions options = eager(training_.budget(0.5), soon);
  options.disk.bytes = 200 << 10;
  Session session(options);
  for (int i = 0; i < 4; ++i) {
    train(session);
    session.wait_for_plan();
  }
  EXPECT_LE(files_.peak(), 200 << 10);
}

TEST_F(Disks, MayBeDamaged) {
  Session session(eager(training_.budget(0.4)));
  train(session);
  int damaged = 0;
  files_.before = [&](FileOperation operation, const fs::path& path) {
    if (operation != FileOperation::open || path.extension() != ".value" || ++damaged % 3 != 0) return;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100 + damaged);
    file.put('!');
  };
  train(session);
  files_.before = [](auto, auto&) {};
  EXPECT_GT(session.summary().disk_failures, 0);
  EXPECT_NE(session.summary().last_disk_failure.find("checksum"), std::string::npos);
  EXPECT_GT(session.summary().notes, 0) << "values are replayed because their copies are lost";
  EXPECT_EQ(session.summary().divergences, 0) << "the operators are the same";
  train(session);
}

TEST_F(Disks, ThatCannotBeUsedAreAnErrorOfTheSession) {
  SessionOptions options = eager(training_.budget(0.5));
  options.disk.folder = folder_ / "untracked";
  const auto error = thrown_by<DiskError>([&] { Session session(options); });
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(std::string(error->what()).find("untracked"), std::string::npos);
  options.disk = {.folder = folder_.path(), .bytes = -1};
  EXPECT_TRUE(thrown_by<BadOption>([&] { Session session(options); }).has_value());
}

// ---- values that cannot be recomputed
// ---------------------------------------------------------------------------------

// Draws from the default generator by itself, so that nobody can draw it again.
at::Tensor draw_in_its_own_way(const at::Tensor& x) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  return x * static_cast<double>(at::check_generator<at::CPUGeneratorImpl>(generator)->random() % 1000) * 1e-3;
}
TORCH_LIBRARY(reprise_disk_test, library) {
  library.def("noise(Tensor x) -> Tensor", {at::Tag::nondeterministic_seeded});
  library.impl("noise", c10::DispatchKey::CPU, draw_in_its_own_way);
}

class DisksOfWhatCannotBeRecomputed : public Disks {
 protected:
  std::vector<Snapshot> step() {
    static const auto noise = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("reprise_disk_test::noise", "")
                                  .typed<at::Tensor(const at::Tensor&)>();
    torch::manual_seed(3);
    weight_.mutable_grad() = at::Tensor();
    at::Tensor h = at::ones({64, 256});
    for (int i = 0; i < 12; ++i) h = torch::tanh(h * weight_ * noise.call(at::ones({64, 256})));
    const at::Tensor loss = h.sum();
    loss.backward();
    return snapshots({loss, weight_.grad()});
  }
  Bytes measure() {
    expected_ = step();
    weight_.mutable_grad() = at::Tensor();
    level_ = internal::meter::live();
    internal::meter::mark_peak();
    (void)step();
    weight_.mutable_grad() = at::Tensor();
    return internal::meter::peak();
  }
  Bytes budget(double share) {
    const Bytes peak = measure();
    return level_ + static_cast<Bytes>(share * static_cast<double>(peak - level_));
  }

  at::Tensor weight_ = at::full({256}, 0.5f).requires_grad_(true);
  std::vector<Snapshot> expected_;
  Bytes level_ = 0;
};

TEST_F(DisksOfWhatCannotBeRecomputed, HaveRoomForIt) {
  SessionOptions options = eager(budget(0.35));
  SessionOptions without = options;
  without.disk = {};
  EXPECT_TRUE(thrown_by<BudgetError>([&] {
                Session session(without);
                auto open = session.step();
                (void)step();
              }).has_value());
  Session session(options);
  for (int i = 0; i < 3; ++i) {
    auto open = session.step();
    EXPECT_EQ(difference(expected_, step()), "");
  }
  EXPECT_LE(session.summary().peak(), session.budget());
}

TEST_F(DisksOfWhatCannotBeRecomputed, SayThatItIsLostAndTheNextStepIsAsEver) {
  Session session(eager(budget(0.35)));
  files_.before = [](FileOperation operation, const fs::path& path) {
    if (operation == FileOperation::read) throw FileError("read", path, EIO);
  };
  std::string what;
  try {
    auto open = session.step();
    (void)step();
  } catch (const std::exception& error) {
    what = error.what();
  }
  EXPECT_NE(what.find("cannot be recomputed"), std::string::npos) << what;
  files_.before = [](auto, auto&) {};
  auto open = session.step();
  EXPECT_EQ(difference(expected_, step()), "");
}

TEST_F(DisksOfWhatCannotBeRecomputed, AreAsGoodAsNoneIfNothingCanBeWritten) {
  const auto trains = [&](const SessionOptions& options) {
    Session session(options);
    try {
      for (int i = 0; i < 2; ++i) {
        auto open = session.step();
        EXPECT_EQ(difference(expected_, step()), "");
      }
      return true;
    } catch (const BudgetError&) {
      return false;
    }
  };
  for (double share = 0.4; share < 1.5; share += 0.1) {
    SessionOptions options = eager(budget(share)), without = options;
    without.disk = {};
    if (!trains(without)) continue;
    files_.before = [](FileOperation operation, const fs::path& path) {
      if (operation == FileOperation::write) throw FileError("write", path, ENOSPC);
    };
    EXPECT_TRUE(trains(options)) << share;
    files_.before = [](auto, auto&) {};
    return;
  }
  FAIL() << "the plain peak is not enough";
}

}  // namespace
}  // namespace reprise
