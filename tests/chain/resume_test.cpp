// Passes that outlive their process: killed at any moment, they end with the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "chain/toy.h"
#include "store/store_support.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace reprise::resume_test {
namespace {

using testing::code_of;
using testing::expect_chain_error;
using testing::expect_contains;
using testing::first_layers;
using testing::message_of;
using testing::Numbers;
using testing::some_numbers;
using testing::start_child;
using testing::TemporaryFolder;
using testing::Toy;
using testing::WatchedFiles;

namespace fs = std::filesystem;

const Numbers input = some_numbers(16, 1), seed = some_numbers(16, 2);
constexpr int layers = 30;

// A codec of the caller's.
class Mine : public Codec {
 public:
  [[nodiscard]] std::string_view name() const override { return "mine"; }
  [[nodiscard]] std::string_view summary() const override { return "every byte, turned over"; }
  [[nodiscard]] bool exact() const override { return true; }
  [[nodiscard]] std::optional<std::size_t> room(const ArrayView& array) const override { return array.bytes(); }
  [[nodiscard]] std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    std::ranges::transform(array.data(), room.begin(), std::bit_not());
    return array.bytes();
  }
  void decode(std::span<const std::byte> coded, Element, std::span<std::byte> out) const override {
    std::ranges::transform(coded, out.begin(), std::bit_not());
  }
};
const Mine mine;

struct Way {
  const char* name;
  std::function<SchedulePointer()> schedule;
  const Codec* codec = nullptr;
};
std::vector<Way> ways() {
  return {{"every", [] { return schedule::every(7); }},
          {"slots", [] { return schedule::slots(4); }, &codec("zstd")},
          {"slots with a codec of the caller's", [] { return schedule::slots(4); }, &mine},
          {"disk", [] { return schedule::memory_and_disk({.memory_slots = 2, .disk_slots = 5}); }},
          {"online", [] { return schedule::online(3); }},
          {"everything", [] { return schedule::everything(); }, &codec("exact")}};
}

// The program that is killed: the same every time.
struct Program {
  const TemporaryFolder& folder;
  const Way& way;
  FileSystem* files = nullptr;
  const Toy& toy;

  [[nodiscard]] Chain<Numbers> chain() const {
    auto made = toy.chain(layers);
    made.schedule(way.schedule());
    if (way.codec) made.codec(*way.codec);
    internal::set_file_system(made, files);
    made.disk({.folder = folder.path(), .keep = true});
    return made;
  }
  // Returns whether all bits are right.
  [[nodiscard]] bool run(const Toy::Plain& plain) const {
    auto made = chain();
    (void)made.resume(42);
    const bool result = made.forward(input) == plain.result;
    return made.backward(seed) == plain.gradient && result;
  }
};

// How far a run came, and that it can go on from there in this process.
TEST(ChainResume, GoesOnWhereAClosureThrewAndRunsNothingTwiceThatIsOnDisk) {
  const TemporaryFolder folder;
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  int calls_left = 23;
  Chain<Numbers> chain(
      layers,
      [&](int layer, const Numbers& x) {
        if (calls_left-- == 0) throw std::runtime_error("power cut");
        return toy.forward(layer, x);
      },
      [&](int layer, const Numbers& x, Numbers gradient) { return toy.backward(layer, x, gradient); });
  chain.schedule(schedule::every(5));
  chain.disk({.folder = folder.path(), .keep = true});
  EXPECT_EQ(chain.resume(), ChainResume{});
  EXPECT_THROW((void)chain.forward(input), std::runtime_error);
  calls_left = 1000;
  toy.forwards.clear();
  EXPECT_EQ(chain.resume(), (ChainResume{true, 20, std::nullopt}));
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(toy.forwards.begin()->first, 20);
  EXPECT_EQ(chain.statistics().forward_calls, 10u);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_EQ(chain.statistics().backward_calls, static_cast<std::uint64_t>(layers));

  // A pass that is over is there until the next one begins.
  toy.forwards.clear();
  EXPECT_EQ(chain.resume(), (ChainResume{true, layers, 0}));
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_TRUE(toy.forwards.empty());
  EXPECT_EQ(chain.forward(input), plain.result) << "a new pass";
  EXPECT_EQ(toy.forwards.size(), static_cast<std::size_t>(layers));
}

TEST(ChainResume, AnyStateCanBeRecomputedWhereverThePassGoesOn) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  struct Interruption {
    int forward, backward;  // the layers that throw
  };
  constexpr int none = -1;
  for (const auto& [forward, backward] : {Interruption{23, none}, {none, layers - 1}, {none, 8}, {none, none}}) {
    for (const Id first : {0, 6}) {
      const TemporaryFolder folder;
      bool throws = true;
      Chain<Numbers> chain(
          layers,
          [&, at = forward](int layer, const Numbers& x) {
            if (throws && layer == at) throw std::runtime_error("power cut");
            return toy.forward(layer, x);
          },
          [&, at = backward](int layer, const Numbers& x, Numbers gradient) {
            if (throws && layer == at) throw std::runtime_error("power cut");
            return toy.backward(layer, x, gradient);
          });
      chain.schedule(schedule::every(5));
      chain.disk({.folder = folder.path(), .keep = true});
      try {
        (void)chain.forward(plain.states[first], first);
        (void)chain.backward(seed);
      } catch (const std::runtime_error&) {
      }
      throws = false;
      EXPECT_TRUE(chain.resume());
      EXPECT_EQ(chain.forward(plain.states[first], first), plain.result);
      for (Id layer = first; layer < layers; ++layer) {
        EXPECT_EQ(chain.recompute(layer), plain.states[layer + 1]) << layer << " from " << first << " on";
      }
      if (first > 1) expect_chain_error([&] { (void)chain.recompute(first - 2); }, "nor any before it is remembered");
      (void)chain.backward(seed);
      EXPECT_EQ(chain.statistics().stored, 0);
    }
  }
}

TEST(ChainResume, APassThatAnotherVersionHasKeptIsANamedErrorAndCanBeCleared) {
  const TemporaryFolder folder;
  const std::vector<std::uint64_t> of_the_first_format = {1, layers, 0, 0, 0, 0, 128};
  Store({.disk = DiskTier{.folder = folder.path(), .keep = true}}).put("pass", of_the_first_format);
  auto chain = Toy().chain(layers);
  chain.disk({.folder = folder.path(), .keep = true});
  expect_chain_error([&] { (void)chain.resume(); }, "kept by another version of Reprise: clear() removes it");
  chain.clear();
  EXPECT_FALSE(chain.resume());
}

TEST(ChainResume, AfterBackwardThrewOnlyWhatIsLeftIsRun) {
  const TemporaryFolder folder;
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  bool throws = true;
  Chain<Numbers> chain(
      layers, [&](int layer, const Numbers& x) { return toy.forward(layer, x); },
      [&](int layer, const Numbers& x, Numbers gradient) {
        if (throws && layer == 8) throw std::runtime_error("power cut");
        return toy.backward(layer, x, gradient);
      });
  chain.schedule(schedule::every(5));
  chain.disk({.folder = folder.path(), .keep = true});
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_THROW(chain.backward(seed), std::runtime_error);
  throws = false;
  toy.backwards.clear();
  EXPECT_EQ(chain.resume(), (ChainResume{true, layers, 10}));
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_EQ(toy.backwards.size(), 10u) << "layers 0..9";
}

// Each operation of the file system in turn is the last one of a process, also while it resumes.
TEST(ChainResume, AfterAKillAtAnyOperationOfTheFileSystemTheBitsAreTheSame) {
  for (const Way& way : ways()) {
    const Toy toy;
    const auto plain = toy.plain(first_layers(layers), input, seed);
    const int step = std::getenv("REPRISE_LONG") ? 1 : way.name == std::string("disk") ? 3 : 17;
    bool finished = false;
    for (int last = 0; !finished; last += step) {
      ASSERT_LT(last, 5000);
      const TemporaryFolder folder;
      const auto run = [&](int until) {
        return testing::in_child([&] {
          WatchedFiles files;
          std::atomic<int> operations = 0;
          files.before = [&](auto, auto&) {
            if (operations++ == until) ::raise(SIGKILL);
          };
          return Program{folder, way, &files, toy}.run(plain) ? 0 : 1;
        });
      };
      int code = run(last);
      finished = code == 0;
      if (!finished) {
        ASSERT_EQ(code, 128 + SIGKILL);
        code = run(last / 2 + 3);  // and once more, earlier
        ASSERT_TRUE(code == 0 || code == 128 + SIGKILL) << way.name << " after operation " << last << ": " << code;
        code = run(100'000);
      }
      ASSERT_EQ(code, 0) << way.name << " after operation " << last;
    }
  }
}

// Killed at random moments, again and again, until a process comes to the end.
TEST(ChainResume, AfterHundredsOfKillsAtRandomMomentsTheBitsAreTheSame) {
  const int wanted = std::getenv("REPRISE_LONG") ? 3000 : 300;
  std::mt19937_64 random(std::getenv("REPRISE_LONG") ? std::random_device()() : 5);
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  int kills = 0, finished = 0;
  for (std::size_t round = 0; kills < wanted; ++round) {
    const auto all = ways();
    const Way& way = all[round % all.size()];
    const TemporaryFolder folder;
    for (bool over = false; !over;) {
      const pid_t child = start_child([&] { return Program{folder, way, nullptr, toy}.run(plain) ? 0 : 1; });
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 12'000));
      ::kill(child, SIGKILL);
      const int code = code_of(child);
      ASSERT_TRUE(code == 0 || code == 128 + SIGKILL) << way.name << ": " << code;
      over = code == 0;
      kills += !over;
      finished += over;
      if (kills >= wanted && !over) {
        ASSERT_TRUE((Program{folder, way, nullptr, toy}.run(plain))) << way.name;
        over = true;
      }
    }
  }
  RecordProperty("kills", kills);
  EXPECT_GE(kills, wanted);
  EXPECT_GT(finished, 0);
}

TEST(ChainResume, WithAnotherScheduleTheBitsAreTheSameToo) {
  const TemporaryFolder folder;
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  {
    auto chain = toy.chain(layers);
    chain.schedule(schedule::every(4));
    chain.disk({.folder = folder.path(), .keep = true});
    (void)chain.forward(input);
  }
  auto chain = toy.chain(layers);
  chain.schedule(schedule::slots(2));
  chain.disk({.folder = folder.path(), .keep = true});
  EXPECT_EQ(chain.resume(), (ChainResume{true, layers, std::nullopt}));
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_LE(chain.statistics().peak_remembered, 4u) << "the states on disk do not come back all at once";
}

TEST(ChainResume, AnotherChainsPassAndAnotherInputAreNamedErrors) {
  const TemporaryFolder folder;
  const Toy toy;
  const auto keeping = [&](Chain<Numbers> chain) {
    chain.disk({.folder = folder.path(), .keep = true});
    return chain;
  };
  {
    auto chain = keeping(toy.chain(layers));
    EXPECT_FALSE(chain.resume(7));
    (void)chain.forward(input);
  }
  expect_chain_error([&] { (void)keeping(toy.chain(layers + 1)).resume(7); }, "30 layers, this one 31");
  expect_chain_error([&] { (void)keeping(toy.chain(first_layers(layers))).resume(8); }, "fingerprint is 7, not 8");
  std::vector<int> others = first_layers(layers);
  std::swap(others[3], others[4]);
  expect_chain_error([&] { (void)keeping(toy.chain(others)).resume(7); }, "other numbers");
  expect_chain_error([&] { (void)keeping(toy.chain(layers)).forward(input); }, "resume() goes on with it");
  auto chain = keeping(toy.chain(layers));
  EXPECT_TRUE(chain.resume(7));
  expect_chain_error([&] { (void)chain.forward(some_numbers(16, 9)); }, "another input");
  EXPECT_TRUE(chain.resume(7));
  expect_chain_error([&] { (void)chain.forward(some_numbers(15, 1)); }, "120 bytes, there 128");
  EXPECT_TRUE(chain.resume(7)) << "an error loses nothing";
  (void)chain.forward(input);
  (void)chain.backward(seed);
  EXPECT_EQ(chain.resume(7), (ChainResume{true, layers, 0}));
  (void)chain.forward(some_numbers(16, 9));  // a pass that is over does not stand in the way of the next one
  EXPECT_EQ(chain.resume(7), (ChainResume{true, layers, std::nullopt}));
  chain.clear();
  EXPECT_FALSE(chain.resume(7));
}

TEST(ChainResume, AnotherGradientIsANamedErrorOnceBackwardHasBegun) {
  const TemporaryFolder folder;
  const Toy toy;
  bool throws = true;
  Chain<Numbers> chain(
      layers, [&](int layer, const Numbers& x) { return toy.forward(layer, x); },
      [&](int layer, const Numbers& x, Numbers gradient) {
        if (throws && layer == 8) throw std::runtime_error("power cut");
        return toy.backward(layer, x, gradient);
      });
  chain.disk({.folder = folder.path(), .keep = true});
  (void)chain.forward(input);
  EXPECT_THROW(chain.backward(seed), std::runtime_error);
  throws = false;
  EXPECT_TRUE(chain.resume());
  (void)chain.forward(input);
  expect_chain_error([&] { (void)chain.backward(input); }, "another gradient");
}

TEST(ChainResume, ADamagedOrForeignFolderIsAnErrorWithTheNameOfTheFile) {
  const TemporaryFolder folder;
  const Toy toy;
  auto chain = toy.chain(layers);
  chain.disk({.folder = folder.path(), .keep = true});
  (void)chain.forward(input);
  (void)chain.forward(input);  // a new pass removes the one before
  fs::path file;
  auto other = toy.chain(layers);
  other.disk({.folder = folder.path(), .keep = true});
  expect_contains(message_of<DiskError>([&] { (void)other.resume(); }), "in use");
  chain = toy.chain(2);
  for (const auto& entry : fs::directory_iterator(folder.path() / "reprise-kept")) {
    if (entry.path().extension() == ".value") file = entry.path();
  }
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end).put('!');
  expect_contains(message_of<DiskError>([&] { (void)other.resume(); }), file.string());
  fs::remove(file);
  std::ofstream(folder.path() / "reprise-kept" / "notes.txt") << "mine";
  expect_contains(message_of<DiskError>([&] { (void)other.resume(); }), "notes.txt");
  fs::remove_all(folder.path() / "reprise-kept");
  {
    Store store({.disk = DiskTier{.folder = folder.path(), .keep = true}});
    store.put("weights", input);
  }
  expect_chain_error([&] { (void)other.resume(); }, "\"weights\", which no chain has written");
}

TEST(ChainResume, APassWhoseCodecIsNotThereIsAnErrorThatNamesItAndCanBeCleared) {
  const TemporaryFolder folder;
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  {
    auto chain = toy.chain(layers);
    chain.codec(mine);
    chain.disk({.folder = folder.path(), .keep = true});
    (void)chain.forward(input);
  }
  auto without = toy.chain(layers);
  without.disk({.folder = folder.path(), .keep = true});
  expect_contains(message_of<DiskError>([&] { (void)without.resume(); }), "codec 'mine' made it");
  without.clear();
  EXPECT_FALSE(without.resume().found);
  EXPECT_EQ(without.forward(input), plain.result);
  EXPECT_EQ(without.backward(seed), plain.gradient);
}

TEST(ChainResume, APassThatIsDamagedCanBeCleared) {
  const TemporaryFolder folder;
  const Toy toy;
  {
    auto chain = toy.chain(layers);
    chain.disk({.folder = folder.path(), .keep = true});
    (void)chain.forward(input);
  }
  for (const auto& entry : fs::directory_iterator(folder.path() / "reprise-kept")) {
    if (entry.path().extension() == ".value") fs::resize_file(entry.path(), 40);
  }
  auto chain = toy.chain(layers);
  chain.disk({.folder = folder.path(), .keep = true});
  EXPECT_THROW((void)chain.resume(), DiskError);
  chain.clear();
  EXPECT_FALSE(chain.resume().found);
}

// ---- values that are not what the pass has kept ---------------------------------------------------------------------

// A chain that takes states of any size, so that only what was kept can be wrong. Its forward was interrupted behind
// state 20.
class ChangedPass : public ::testing::Test {
 protected:
  ChangedPass() {
    auto chain = made();
    throws_ = true;
    EXPECT_THROW((void)chain.forward(input), std::runtime_error);
    throws_ = false;
  }
  [[nodiscard]] Chain<Numbers> made() {
    Chain<Numbers> chain(
        layers,
        [this](int layer, const Numbers& x) {
          if (throws_ && layer == 23) throw std::runtime_error("power cut");
          Numbers y = x;
          for (double& number : y) number += layer;
          return y;
        },
        [](int, const Numbers&, Numbers gradient) { return gradient; });
    chain.schedule(schedule::every(5));
    chain.disk({.folder = folder_.path(), .keep = true});
    return chain;
  }
  void change(const Key& key, const ArrayView& array) {
    Store store({.disk = DiskTier{.folder = folder_.path(), .keep = true}});
    EXPECT_TRUE(store.contains(key) || key.text == "seed") << key.text;
    store.put(key, array);
  }

  const TemporaryFolder folder_;
  bool throws_ = false;
};

TEST_F(ChangedPass, ASeedOrARecordOfAnotherShapeOrTypeIsANamedError) {
  change("seed", ArrayView(Element::uint64, {0}, {}));
  expect_chain_error([&] { (void)made().resume(); }, "the seed in " + folder_.path().string());
  change("seed", std::vector<double>{1});
  expect_chain_error([&] { (void)made().resume(); }, "is not one number");
  change("pass", std::vector<std::uint64_t>{});
  expect_chain_error([&] { (void)made().resume(); }, "another version of Reprise");
}

TEST_F(ChangedPass, AStateOfAnotherShapeIsANamedErrorWhereSizesAreKnown) {
  change(20, Numbers(15, 1));
  auto chain = made();
  chain.measure(input);
  EXPECT_TRUE(chain.resume());
  expect_chain_error([&] { (void)chain.forward(input); },
                     "it has 120 bytes, and by the sizes that were set or measured 128");
  chain.clear();
  EXPECT_EQ(chain.forward(input).size(), input.size());
}

TEST_F(ChangedPass, AStateThatIsFarTooLargeIsNotEvenRead) {
  testing::HookedCodec hooked(codec("zstd"));
  int decoded = 0;
  hooked.decoding = [&] { ++decoded; };
  {
    Store store({.disk = DiskTier{.folder = folder_.path(), .keep = true}});
    store.put(20, Numbers(100'000), PutOptions{.codec = &hooked});
  }
  auto chain = made();
  chain.codec(hooked);
  chain.measure(input);
  EXPECT_TRUE(chain.resume());
  decoded = 0;
  expect_chain_error([&] { (void)chain.forward(input); }, "it has 800000 bytes");
  EXPECT_EQ(decoded, 0);
}

// Nothing says what a state has to be, until forward makes it once more for backward.
TEST_F(ChangedPass, AStateThatForwardDoesNotMakeIsANamedErrorInBackward) {
  change(20, Numbers(16, 1));
  auto chain = made();
  EXPECT_TRUE(chain.resume());
  (void)chain.forward(input);
  expect_chain_error([&] { (void)chain.backward(seed); },
                     "state 20 as it was kept is not what forward makes of state 15");
  EXPECT_FALSE(chain.resume()) << "gradients were kept that came from it";
}

TEST_F(ChangedPass, WithoutVerificationItsShapeIsComparedAllTheSame) {
  change(20, Numbers(15, 1));
  auto chain = made();
  chain.verify(Verify::never);
  EXPECT_TRUE(chain.resume());
  (void)chain.forward(input);
  expect_chain_error([&] { (void)chain.backward(seed); }, "state 20 as it was kept");
}

TEST_F(ChangedPass, AnInputThatIsNotThatOfThePassIsANamedError) {
  change(0, Numbers(15, 1));
  expect_chain_error([&] { (void)made().resume(); }, "state 0 in ");
  change(0, Numbers(16, 1));
  auto chain = made();
  EXPECT_TRUE(chain.resume());
  (void)chain.forward(input);
  expect_chain_error([&] { (void)chain.backward(seed); }, "it is not the input of the pass");
}

TEST_F(ChangedPass, AStateOfAnotherTypeIsANamedError) {
  change(20, std::vector<float>(16, 1));
  auto chain = made();
  EXPECT_TRUE(chain.resume());
  expect_chain_error([&] { (void)chain.forward(input); }, "the value \"20\" in ");
}

TEST_F(ChangedPass, AGradientOfAnotherTypeIsANamedError) {
  {
    auto chain = made();
    EXPECT_TRUE(chain.resume());
    (void)chain.forward(input);
    (void)chain.backward(seed);
  }
  change("gradient 0", std::vector<float>(16, 1));
  auto chain = made();
  EXPECT_TRUE(chain.resume());
  (void)chain.forward(input);
  expect_chain_error([&] { (void)chain.backward(seed); }, "the value \"gradient 0\" in ");
}

TEST_F(ChangedPass, ResumingDecodesNothing) {
  testing::HookedCodec hooked(codec("zstd"));
  int decoded = 0;
  hooked.decoding = [&] { ++decoded; };
  {
    Store store({.disk = DiskTier{.folder = folder_.path(), .keep = true}});
    store.put(20, Numbers(1000), PutOptions{.codec = &hooked});
  }
  auto chain = made();
  chain.codec(hooked);
  EXPECT_TRUE(chain.resume());
  EXPECT_EQ(decoded, 0);
  (void)chain.forward(input);
  EXPECT_GT(decoded, 0);
}

// Its input is its result. Each operation of the file system in turn is the last one of a process.
TEST(ChainResume, APassOfNoLayersGoesOnAfterAnyOperationToo) {
  const Toy toy;
  bool finished = false;
  for (int last = 0; !finished; ++last) {
    ASSERT_LT(last, 1000);
    const TemporaryFolder folder;
    const auto run = [&](int until) {
      return testing::in_child([&] {
        WatchedFiles files;
        std::atomic<int> operations = 0;
        files.before = [&](auto, auto&) {
          if (operations++ == until) ::raise(SIGKILL);
        };
        auto chain = toy.chain(4);
        internal::set_file_system(chain, &files);
        chain.disk({.folder = folder.path(), .keep = true});
        (void)chain.resume();
        return chain.forward(input, 4) == input && chain.backward(seed) == seed ? 0 : 1;
      });
    };
    finished = run(last) == 0;
    ASSERT_EQ(run(100'000), 0) << last;
    auto chain = toy.chain(4);
    chain.disk({.folder = folder.path(), .keep = true});
    EXPECT_EQ(chain.resume(), (ChainResume{true, 4, 0}));
    EXPECT_EQ(chain.forward(seed, 4), seed) << "it is over, and the next pass may have another input";
  }
}

TEST(ChainResume, WhatCannotBeKeptIsSaidAtOnce) {
  const TemporaryFolder folder;
  const Toy toy;
  auto chain = toy.chain(4);
  expect_chain_error([&] { (void)chain.resume(); }, "keep = true");
  chain.disk({.folder = folder.path(), .keep = true});
  chain.codec(codec("half"));
  expect_chain_error([&] { (void)chain.forward(input); }, "half does not");
  auto unknown = toy.chain(ChainLayers::unknown());
  unknown.disk({.folder = folder.path(), .keep = true});
  expect_chain_error([&] { (void)unknown.forward_until(input, [](Id, const Numbers&) { return true; }); }, "known");
}

TEST(ChainForward, CanBeginWithALaterLayerFromAStateTheCallerHas) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  for (const auto& schedule : {schedule::every(4), schedule::slots(3), schedule::online(3), schedule::everything()}) {
    auto chain = toy.chain(layers);
    chain.schedule(schedule);
    for (const int first : {0, 1, 13, layers - 1, layers}) {
      EXPECT_EQ(chain.forward(plain.states[first], first), plain.result);
      if (first < layers) EXPECT_EQ(chain.statistics().forward_calls, static_cast<std::uint64_t>(layers - first));
      if (first == 13) EXPECT_FALSE(chain.remembers(11));
      if (first == 13) EXPECT_EQ(chain.recompute(15), plain.states[16]);
      Numbers gradient = chain.backward(seed);
      for (int k = first; k-- > 0;) gradient = toy.backward(k, plain.states[k], gradient);
      EXPECT_EQ(gradient, plain.gradient) << first;
    }
    expect_chain_error([&] { (void)chain.forward(input, layers + 1); }, "cannot begin with layer 31");
    expect_chain_error([&] { (void)chain.forward(input, -1); }, "cannot begin with layer -1");
    EXPECT_EQ(chain.forward(input), plain.result);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
  }
}

TEST(ChainForward, FromALaterLayerWithACodecADiskAndABudget) {
  const TemporaryFolder folder;
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  auto chain = toy.chain(layers);
  const auto check = [&](const char* what) {
    EXPECT_EQ(chain.forward(plain.states[9], 9), plain.result) << what;
    Numbers gradient = chain.backward(seed);
    for (int k = 9; k-- > 0;) gradient = toy.backward(k, plain.states[k], gradient);
    EXPECT_EQ(gradient, plain.gradient) << what;
  };
  chain.codec(codec("zstd"));
  check("codec");
  chain.disk({.folder = folder.path()});
  chain.schedule(schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 3}));
  check("disk");
  chain.measure(input);
  chain.schedule(schedule::budget(16 * 128 * 3, std::chrono::milliseconds(200)));
  check("budget");
  EXPECT_LE(chain.statistics().peak_stored, 16 * 128 * 3);
}

}  // namespace
}  // namespace reprise::resume_test
