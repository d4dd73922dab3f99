// A pass that is kept on a disk whose budget is small: whether it suffices is said when the pass begins.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "chain/toy.h"
#include "store/store_support.h"
#include "support/temporary_folder.h"

namespace reprise::kept_disk_test {
namespace {

using testing::expect_chain_error;
using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::TemporaryFolder;
using testing::Toy;
using testing::WatchedFiles;

constexpr int layers = 30;
const Numbers input = some_numbers(50, 1), seed = some_numbers(50, 2);

struct Way {
  const char* name;
  SchedulePointer schedule;
  const char* codec = nullptr;
  int first = 0;
};
std::vector<Way> ways() {
  return {{"every", schedule::every(7)},
          {"every, exactly coded", schedule::every(7), "exact"},
          {"slots", schedule::slots(4)},
          {"slots, exactly coded", schedule::slots(4), "exact"},
          {"disk", schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 3, .write_cost = 0, .read_cost = 0})},
          {"online", schedule::online(3)},
          {"selective", schedule::selective(4)},
          {"everything", schedule::everything()},
          {"from layer 11 on", schedule::every(5), nullptr, 11},
          {"from behind the last layer", schedule::every(5), nullptr, layers}};
}

class KeptOnASmallDisk {
 public:
  explicit KeptOnASmallDisk(Way way) : way_(std::move(way)) {
    auto from = first_layers(layers);
    from.erase(from.begin(), from.begin() + way_.first);
    plain_ = toy_.plain(from, input, seed);
  }

  // Returns the most bytes of files there were; none if the pass was refused when it began. The bits are right.
  [[nodiscard]] std::optional<Bytes> run(Bytes budget) {
    const TemporaryFolder folder;
    WatchedFiles files;
    toy_.forwards.clear();
    auto chain = made(folder, budget, files, 0);  // so that every file is written when it is put
    Numbers result;
    try {
      result = chain.forward(input, way_.first);
    } catch (const BadOption& error) {
      EXPECT_NE(std::string(error.what()).find("disk.budget is " + std::to_string(budget)), std::string::npos)
          << error.what();
      EXPECT_TRUE(toy_.forwards.empty()) << way_.name << ": layers have run";
      return std::nullopt;
    }
    EXPECT_EQ(result, plain_.result) << way_.name;
    EXPECT_EQ(chain.backward(seed), plain_.gradient) << way_.name;
    return files.peak();
  }

  // Interrupted at each operation of the file system, and continued as a new process would. Returns what was said when
  // the disk was too small for what the layers that run again need.
  [[nodiscard]] std::vector<std::string> run_interrupted(Bytes budget) {
    std::vector<std::string> refused;
    bool finished = false;
    for (int last = 0; !finished; last += 11) {
      const TemporaryFolder folder;
      Bytes now = budget;
      for (const int until : {last, last / 2, 1'000'000, 1'000'000}) {
        WatchedFiles files;
        std::atomic<int> left = until;
        files.before = [&](auto, const auto& path) {
          if (left-- <= 0) throw FileError("use", path, EIO);
        };
        auto chain = made(folder, now, files, std::nullopt);
        try {
          (void)chain.resume();
          EXPECT_EQ(chain.forward(input, way_.first), plain_.result) << way_.name;
          EXPECT_EQ(chain.backward(seed), plain_.gradient) << way_.name;
          finished = finished || until == last;
          break;
        } catch (const Error& error) {
          if (left < 0) continue;
          refused.emplace_back(error.what());
          EXPECT_NE(std::string(error.what()).find("disk.budget is"), std::string::npos) << error.what();
          EXPECT_LT(now, largest_bytes) << way_.name << " after operation " << last;
          now = largest_bytes;
        }
      }
    }
    return refused;
  }

 private:
  Chain<Numbers> made(const TemporaryFolder& folder, Bytes budget, WatchedFiles& files,
                      std::optional<Bytes> transit) const {
    auto chain = toy_.chain(layers);
    chain.schedule(way_.schedule);
    if (way_.codec) chain.codec(codec(way_.codec));
    internal::set_file_system(chain, &files);
    chain.disk({.folder = folder.path(), .budget = budget, .keep = true}, transit);
    return chain;
  }

  const Way way_;
  const Toy toy_;
  Toy::Plain plain_;
};

// The smallest budget that is not refused, by halving.
Bytes smallest_budget(KeptOnASmallDisk& pass) {
  Bytes refused = 0, enough = 1 << 20;
  while (enough - refused > 1) {
    const Bytes middle = (refused + enough) / 2;
    (pass.run(middle) ? enough : refused) = middle;
  }
  return enough;
}

TEST(KeptDisk, ThatIsTooSmallIsAnErrorWhenThePassBeginsAndTheSmallestThatIsNotIsUsedToTheLastByte) {
  for (const Way& way : ways()) {
    KeptOnASmallDisk pass(way);
    EXPECT_FALSE(pass.run(0)) << way.name;
    const Bytes smallest = smallest_budget(pass);
    EXPECT_EQ(pass.run(smallest), smallest) << way.name;
  }
}

TEST(KeptDisk, OfTheSmallestSizeSufficesForAPassThatIsInterruptedUnlessTheScheduleUsesItItself) {
  for (const Way& way : ways()) {
    KeptOnASmallDisk pass(way);
    const std::vector<std::string> refused = pass.run_interrupted(smallest_budget(pass));
    if (!way.schedule->needs_disk()) EXPECT_EQ(refused, std::vector<std::string>()) << way.name;
  }
}

TEST(KeptDisk, StatesThatTurnOutLargerAreAnErrorOnceOneDoesNotFitAndNotLostInSilence) {
  const TemporaryFolder folder;
  Chain<Numbers> chain(
      40, [](int layer, const Numbers&) { return Numbers(static_cast<std::size_t>(100 + 10 * layer)); },
      [](int, const Numbers&, Numbers gradient) { return gradient; });
  chain.schedule(schedule::every(4));
  chain.disk({.folder = folder.path(), .budget = 20'000, .keep = true});
  expect_chain_error([&] { (void)chain.forward(Numbers(100)); }, "disk.budget is 20000 bytes, of which");

  // What was kept by then is still good.
  chain.disk({.folder = folder.path(), .keep = true});
  const ChainResume resumed = chain.resume();
  EXPECT_TRUE(resumed);
  EXPECT_GT(resumed.forward, 8);
  EXPECT_EQ(chain.forward(Numbers(100)).size(), 490u);
  EXPECT_EQ(chain.backward(Numbers(3)).size(), 3u);
}

TEST(KeptDisk, ThatIsTooSmallForStatesThatABudgetOfMemoryLeavesNoRoomToCodeIsAnErrorWhenThePassBegins) {
  const TemporaryFolder folder;
  const Numbers zeros(1000);
  int calls = 0;
  Chain<Numbers> chain(
      40, [&](int, const Numbers& x) { return ++calls, x; },
      [](int, const Numbers&, Numbers gradient) { return gradient; });
  chain.codec(codec("zstd"));
  chain.disk({.folder = folder.path(), .budget = 12'000, .keep = true});
  chain.measure(zeros);
  chain.schedule(schedule::budget(30 * 8 * 1000, std::chrono::milliseconds(100)));
  calls = 0;
  EXPECT_THROW((void)chain.forward(zeros), BadOption);
  EXPECT_EQ(calls, 0);
}

TEST(KeptDisk, WhatIsOnItsWayThereIsInABudgetOfMemoryToo) {
  const TemporaryFolder folder;
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  auto chain = toy.chain(layers);
  chain.disk({.folder = folder.path(), .keep = true});
  chain.measure(input);
  (void)chain.resume();
  const Bytes state = 8 * 50;
  for (const Bytes states : {6, 8, 12, 20, 40}) {
    chain.schedule(schedule::budget(states * state, std::chrono::milliseconds(100)));
    EXPECT_EQ(chain.forward(input), plain.result);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
    EXPECT_LE(chain.statistics().peak_stored, states * state);
    EXPECT_GT(chain.statistics().peak_disk, 0);
  }
}

}  // namespace
}  // namespace reprise::kept_disk_test
