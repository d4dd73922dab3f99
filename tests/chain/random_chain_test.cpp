// Random chains: any schedule, right or wrong, any kind of closure, size, codec, tier and beginning; settings that
// change between forward and backward; closures, observers and disks that fail at any call; passes that are resumed,
// and folders that were damaged meanwhile. Whatever happens, there is an error that may be, or the bits are
// those of everything remembered. If a codec loses something, they are those of a model that reads the plan aloud.
//
// REPRISE_FUZZ_SECONDS says how long, and REPRISE_FUZZ_SEED with which seed to begin; without them a few cases, the
// same every time, and with REPRISE_LONG many.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <utility>

#include "chain/plan_model.h"
#include "chain/random_steps.h"
#include "chain/uneven.h"
#include "reprise/chain/loop.h"
#include "store/store_support.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::Numbers;
using testing::RandomSteps;
using testing::TemporaryFolder;
using testing::Uneven;

// What happened in all cases, so that a driver that tries nothing is noticed.
struct Counts {
  int passes = 0, errors = 0, interruptions = 0, resumed = 0, damaged = 0, refused = 0, models = 0, long_chains = 0;
};

// Thrown by a closure or an observer.
struct Thrown {};

template <class Tape>
class RandomChain {
  static constexpr bool tapes = !std::is_same_v<Tape, NoTape>;
  using OneChain = Chain<Numbers, Numbers, Tape>;

 public:
  RandomChain(std::uint64_t seed, Counts& counts) : random_(seed), counts_(counts), net_(some_sizes()) {}

  void run() {
    unknown_ = layers() > 0 && one_in(6);
    kind_ = below(3);
    draw_tiers();
    new_process();
    files_.before = [this](auto, const fs::path& path) {
      if (operations_left_-- == 0) throw FileError("use", path, EIO);
    };
    for (int pass = 0; pass < 3 && !::testing::Test::HasFatalFailure(); ++pass) {
      draw_settings();
      run_pass();
      ++counts_.passes;
    }
  }

 private:
  // ---- what is drawn ----

  int below(int n) { return std::uniform_int_distribution<int>(0, std::max(n, 1) - 1)(random_); }
  bool one_in(int n) { return below(n) == 0; }

  std::vector<std::size_t> some_sizes() {
    const bool is_long = one_in(40);  // so long that steps are taken as they come
    counts_.long_chains += is_long;
    const int layers = is_long ? 10'001 + below(300) : below(one_in(10) ? 200 : 25);
    std::vector<std::size_t> sizes(static_cast<std::size_t>(layers) + 1, static_cast<std::size_t>(1 + below(9)));
    if (one_in(2)) {
      for (std::size_t& size : sizes) size = static_cast<std::size_t>(1 + below(is_long ? 3 : 40));
    }
    return sizes;
  }

  void draw_tiers() {
    if (one_in(3)) return;
    has_disk_ = true;
    keeps_ = !unknown_ && layers() < 1000 && one_in(2);
    if (one_in(4)) disk_budget_ = below(20'000);
  }

  // What is different between passes.
  struct Settings {
    const Codec* codec = nullptr;
    bool budget = false, wrong = false, observed = false, enabled = true;
    Bytes limit = largest_bytes;
    [[nodiscard]] bool exact() const { return !enabled || !codec || codec->exact(); }
  };

  void draw_settings() {
    set_codec();
    settings_.enabled = !one_in(10);
    chain_->enabled(settings_.enabled);
    set_schedule();
    if (one_in(3)) chain_->verify(std::vector{Verify::never, Verify::first_time, Verify::always}[below(3)]);
    settings_.observed = one_in(4);
    chain_->observer({});
    if (settings_.observed) {
      chain_->observer([this](const ChainProgress& progress) {
        EXPECT_LE(progress.stored, limit_) << said();
        if (progress.phase != ChainProgress::Phase::planning) call();
      });
    }
  }

  // A codec that was set can be changed to another one, and not be taken away.
  void set_codec() {
    if (!one_in(2)) return;
    settings_.codec = codecs()[static_cast<std::size_t>(below(static_cast<int>(codecs().size())))];
    if (keeps_ && !settings_.codec->exact()) settings_.codec = &codec("zstd");
    chain_->codec(*settings_.codec);
  }

  void set_schedule() {
    settings_.budget = settings_.wrong = false;
    settings_.limit = largest_bytes;
    chain_->schedule(some_schedule());
    said_ = chain_->schedule()->text();
  }

  SchedulePointer some_schedule() {
    const bool is_long = layers() > 1000;
    switch (unknown_ ? below(3) : below(12)) {
      case 0: return schedule::online(1 + below(is_long ? 60 : 5));
      case 1: return schedule::selective(below(6));
      case 2: return schedule::costly_layers(below(3));
      case 3: return schedule::everything();
      case 4: return schedule::every(1 + below(8), 1 + below(10));
      case 5: return schedule::every(1 + below(8), std::nullopt);
      case 6: return schedule::slots(is_long ? 10 + below(100) : 1 + below(6));
      case 7:
        if (!has_disk_ || is_long) break;
        return schedule::memory_and_disk(
            {.memory_slots = below(3), .disk_slots = 1 + below(4), .write_cost = below(3) * 1.0, .read_cost = 1});
      case 8: {
        std::vector<Id> positions;
        for (int k = below(5); k > 0 && layers() > 0; --k) positions.push_back(below(layers()));
        return schedule::after(std::move(positions));
      }
      case 9:
        if (is_long || layers() == 0 || !settings_.exact()) break;
        return some_budget();
      case 10: settings_.wrong = true; [[fallthrough]];
      default:
        return std::make_shared<RandomSteps>(random_(), has_disk_ && !is_long ? 1 + below(2) : 1, settings_.wrong);
    }
    return schedule::slots(3);
  }

  // Sizes are measured, or assumed, and then they are wrong.
  SchedulePointer some_budget() {
    calls_left_ = operations_left_ = many;
    if (one_in(2)) {
      chain_->measure(plain_.states[0]);
    } else {
      ChainForm form = equal_layers(layers());
      form.input = form.gradient = 1 + below(200);
      for (ChainLayerForm& layer : form.layers) layer = {1 + below(200), tapes ? 1 + below(200) : 0, 1 + below(200)};
      chain_->sizes(form);
    }
    Bytes all = 0;
    for (const Numbers& state : plain_.states) all += static_cast<Bytes>(state.size() * sizeof(double));
    settings_.budget = true;
    settings_.limit = 1 + static_cast<Bytes>(random_() % static_cast<std::uint64_t>(2 * all + 1));
    return schedule::budget(settings_.limit, 1ms * (1 + below(5)));
  }

  // ---- the chain ----

  void call() {
    if (calls_left_-- <= 0) throw Thrown();
  }

  OneChain make() {
    const auto made = [this](int layer, const Numbers& x, Numbers* tape) {
      call();
      return net_.forward(layer, x, tape);
    };
    const ChainLayers layers = unknown_ ? ChainLayers::unknown() : ChainLayers(net_.layers());
    if constexpr (tapes) {
      const auto backward = [this](int layer, const Numbers& x, const Numbers& tape, const Numbers& gradient) {
        call();
        return net_.backward(layer, x, &tape, gradient);
      };
      if (kind_ == 0) return {layers, made, backward};
      if (kind_ == 1) return {layers, [made](int k, Numbers& x, Numbers* tape) { x = made(k, x, tape); }, backward};
      return {layers, [made](int k, const Numbers& x, Numbers& y, Numbers* tape) { y = made(k, x, tape); }, backward};
    } else {
      const auto backward = [this](int layer, const Numbers& x, const Numbers& gradient) {
        call();
        return net_.backward(layer, x, nullptr, gradient);
      };
      if (kind_ == 0) return {layers, [made](int k, const Numbers& x) { return made(k, x, nullptr); }, backward};
      if (kind_ == 1) return {layers, [made](int k, Numbers& x) { x = made(k, x, nullptr); }, backward};
      return {layers, [made](int k, const Numbers& x, Numbers& y) { y = made(k, x, nullptr); }, backward};
    }
  }

  // Begins the same program once more, with the folder that the first one has left.
  void new_process() {
    calls_left_ = operations_left_ = many;
    chain_.reset();
    chain_ = std::make_unique<OneChain>(make());
    if (has_disk_) {
      internal::set_file_system(*chain_, &files_);
      chain_->disk({.folder = folder_.path(), .budget = disk_budget_.value_or(largest_bytes), .keep = keeps_});
    }
    settings_ = {};
    said_ = chain_->schedule()->text();
  }

  // ---- passes ----

  void run_pass() {
    const int first = !unknown_ && one_in(4) ? below(layers() + 1) : 0;
    bool interrupted = false;
    for (int tries = 0;; ++tries) {
      const bool fails = tries < 5 && one_in(2);
      calls_left_ = fails && one_in(2) ? below(3 * layers() + 2) : many;
      operations_left_ = fails && has_disk_ ? below(100) : many;
      try {
        if (keeps_ && interrupted && chain_->resume()) ++counts_.resumed;
        run_through(first, interrupted);
        return;
      } catch (const Thrown&) {
        ++counts_.interruptions;
      } catch (const Error& error) {
        ++counts_.errors;
        if (!may_be(error)) {
          ADD_FAILURE() << error.what() << '\n' << said();
          return;
        }
        if (damaged_) start_afresh();
        if (settings_.wrong || settings_.budget || disk_budget_) recover();
      }
      // What throws besides the pass leaves it open.
      if (!std::exchange(looking_, false)) EXPECT_EQ(chain_->statistics().stored, 0) << said();
      interrupted = true;
      if (keeps_ && one_in(2)) {
        new_process();
        if (one_in(3)) damage();
      }
      if (one_in(3)) draw_settings();
    }
  }

  [[nodiscard]] bool may_be(const Error& error) {
    const std::string text = error.what();
    const auto speaks_of = [&](const std::string& part) { return text.find(part) != std::string::npos; };
    if (damaged_ && speaks_of((folder_.path() / "reprise-kept").string())) {
      ++counts_.refused;
      return true;
    }
    return operations_left_ < 0 || ((settings_.wrong || wrong_) && speaks_of("the schedule's")) ||
           ((settings_.budget || limit_ < largest_bytes) && speaks_of("budget")) ||
           (disk_budget_ && speaks_of("disk.budget")) ||
           (settings_.budget && disk_budget_ && speaks_of("found no place"));
  }

  // By a schedule that has no reason to fail.
  void recover() {
    if (disk_budget_) {
      disk_budget_.reset();
      new_process();
    }
    use_safe_schedule();
  }
  void use_safe_schedule() {
    settings_.wrong = settings_.budget = false;
    settings_.limit = largest_bytes;
    chain_->schedule(unknown_ ? schedule::online(2 + layers() / 10) : schedule::slots(2 + layers() / 10));
    said_ = chain_->schedule()->text();
  }

  void start_afresh() {
    chain_.reset();
    fs::remove_all(folder_.path() / "reprise-kept");
    damaged_ = false;
    new_process();
  }

  void run_through(int first, bool resumed) {
    const Settings now = settings_;  // what is set from here on is for the next pass
    limit_ = now.enabled ? now.limit : largest_bytes;
    wrong_ = now.enabled && now.wrong;
    const auto begin = static_cast<std::size_t>(first);
    const int way = resumed && keeps_ ? 0 : below(4);
    Numbers gradient = plain_.gradients.back();
    bool counted = !resumed || !keeps_;
    if (way == 1 && first == 0 && !keeps_ && layers() > 0) {
      gradient = run_loop(std::move(gradient));
    } else {
      Numbers result;
      if (unknown_) {
        result = chain_->forward_until(plain_.states[0],
                                       [this](Id position, const Numbers&) { return position + 1 == layers(); });
      } else {
        result = chain_->forward(plain_.states[begin], first);
      }
      EXPECT_EQ(result, plain_.states.back()) << said();
      if (way == 2) {
        looking_ = true;
        look_at_states(first, now);
        looking_ = counted = false;
      }
      if (way == 3) change_settings();
      gradient = chain_->backward(std::move(gradient));
    }
    damaged_ = false;
    const ChainStatistics statistics = chain_->statistics();
    EXPECT_EQ(statistics.stored, 0) << said();
    EXPECT_EQ(statistics.disk, keeps_ ? statistics.disk : 0) << said();
    EXPECT_LE(statistics.peak_stored, limit_) << said();
    EXPECT_LE(statistics.peak_disk, disk_budget_.value_or(largest_bytes)) << said();
    if (now.exact()) EXPECT_EQ(gradient, plain_.gradients[begin]) << said();
    if (now.budget || (resumed && keeps_) || (now.exact() && !one_in(3))) return;
    if (!now.exact() && has_disk_) return;  // what is larger than the memory of the disk's store goes there exactly
    ++counts_.models;
    const auto model = run_plan(chain_->plan(), net_, first, tapes, now.enabled ? now.codec : nullptr,
                                plain_.states[begin], plain_.gradients.back());
    EXPECT_TRUE(same(gradient, model.gradient)) << said();
    if (counted && !now.wrong) EXPECT_EQ(statistics.forward_calls, model.forward_calls) << said();
  }

  // What a codec has changed may lead out of the numbers there are.
  [[nodiscard]] static bool same(const Numbers& a, const Numbers& b) {
    return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
  }

  Numbers run_loop(Numbers gradient) {
    ChainLoop loop(*chain_);
    Numbers x = plain_.states[0];
    for (int k = 0; k < layers(); ++k) {
      x = loop.forward(x);
      if (x != plain_.states[static_cast<std::size_t>(k) + 1]) ADD_FAILURE() << "layer " << k << ' ' << said();
    }
    for (int k = 0; k < layers(); ++k) gradient = loop.backward(std::move(gradient));
    return gradient;
  }

  // Without disturbing the pass.
  void look_at_states(int first, const Settings& now) {
    for (int count = 0; count < 3 && first < layers(); ++count) {
      const int position = first + below(layers() - first);
      const auto state = static_cast<std::size_t>(position) + 1;
      const bool remembered = chain_->remembers(position);
      if (remembered && now.exact()) EXPECT_EQ(chain_->state(position), plain_.states[state]) << said();
      if (one_in(2) && (!resumed_backward() || remembered)) {
        const Numbers again = chain_->recompute(position);
        if (now.exact()) EXPECT_EQ(again, plain_.states[state]) << said();
      }
      if (one_in(3) && !now.budget && !keeps_) chain_->save(position, plain_.states[state]);
    }
  }
  // A pass that was kept and whose forward is over holds nothing in memory.
  [[nodiscard]] bool resumed_backward() const { return keeps_ && chain_->statistics().remembered == 0; }

  void change_settings() {
    switch (below(4)) {
      case 0: set_codec(); break;
      case 1: chain_->enabled(settings_.enabled = !settings_.enabled); break;
      case 2:
        if (has_disk_ && !keeps_ && !disk_budget_) chain_->disk({.folder = folder_.path()});
        break;
      default: use_safe_schedule();
    }
  }

  // ---- damage ----

  void damage() {
    std::vector<fs::path> all;
    if (!fs::exists(folder_.path() / "reprise-kept")) return;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "reprise-kept")) all.push_back(entry.path());
    std::sort(all.begin(), all.end());
    if (all.empty()) return;
    const auto one = [&] { return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))]; };
    damaged_ = true;
    ++counts_.damaged;
    for (int changes = 1 + below(2); changes > 0; --changes) {
      const fs::path file = one(), other = one();
      std::error_code ignored;
      const auto size = static_cast<int>(std::min<std::uintmax_t>(fs::file_size(file, ignored), 1 << 20));
      switch (below(6)) {
        case 0: fs::resize_file(file, static_cast<std::uintmax_t>(below(size + 1)), ignored); break;
        case 1: fs::remove(file, ignored); break;
        case 2: fs::copy_file(file, other, fs::copy_options::overwrite_existing, ignored); break;
        case 3: fs::rename(file, file.parent_path() / ("other" + file.extension().string()), ignored); break;
        default: {
          std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
          stream.seekp(below(size)).put(static_cast<char>(random_()));
        }
      }
    }
  }

  [[nodiscard]] int layers() const { return net_.layers(); }
  [[nodiscard]] std::string said() const {
    return said_ + " of " + std::to_string(layers()) + " layers, closures of kind " + std::to_string(kind_) +
           (tapes ? ", tapes" : "") + (unknown_ ? ", unknown" : "") + (has_disk_ ? ", disk" : "") +
           (keeps_ ? ", kept" : "") + (damaged_ ? ", damaged" : "") + (settings_.enabled ? "" : ", off") +
           (settings_.codec ? ", " + std::string(settings_.codec->name()) : "") +
           (settings_.observed ? ", observed" : "");
  }

  static constexpr int many = 1'000'000'000;
  std::mt19937_64 random_;
  Counts& counts_;
  const Uneven net_;
  const Uneven::Plain plain_ = net_.plain();
  const TemporaryFolder folder_;
  testing::WatchedFiles files_;  // which does not sync
  bool unknown_ = false, has_disk_ = false, keeps_ = false;
  int kind_ = 0;  // of closure
  std::optional<Bytes> disk_budget_;
  Settings settings_;
  std::string said_;
  Bytes limit_ = largest_bytes;  // of the pass
  bool wrong_ = false;           // its steps are
  bool damaged_ = false, looking_ = false;
  int calls_left_ = many;
  std::atomic<int> operations_left_ = many;
  std::unique_ptr<OneChain> chain_;  // which uses everything above
};

TEST(RandomChains, GiveTheBitsOfEverythingRememberedOrAnErrorThatMayBe) {
  const char* const seconds = std::getenv("REPRISE_FUZZ_SECONDS");
  const bool is_long = std::getenv("REPRISE_LONG") != nullptr;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds ? std::atof(seconds) : 0);
  const char* const given = std::getenv("REPRISE_FUZZ_SEED");
  const std::uint64_t first = given                ? std::strtoull(given, nullptr, 10)
                              : seconds || is_long ? std::random_device()()
                                                   : 1;
  Counts counts;
  std::uint64_t seed = first;
  const auto goes_on = [&] {
    return seconds ? std::chrono::steady_clock::now() < end : seed < first + (is_long ? 10'000 : 250);
  };
  for (; goes_on() && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    if (seed % 4 == 0) {
      RandomChain<Numbers>(seed, counts).run();
    } else {
      RandomChain<NoTape>(seed, counts).run();
    }
  }
  std::cout << seed - first << " chains from seed " << first << ": " << counts.passes << " passes, "
            << counts.interruptions << " interrupted, " << counts.resumed << " resumed, " << counts.errors
            << " errors that may be; " << counts.damaged << " folders damaged, " << counts.refused << " refused; "
            << counts.models << " compared with the model; " << counts.long_chains << " long chains\n";
  if (seconds) return;  // which may be few
  EXPECT_GT(counts.interruptions, 20);
  EXPECT_GT(counts.resumed, 20);
  EXPECT_GT(counts.damaged, 5);
  EXPECT_GT(counts.refused, 2);
  EXPECT_GT(counts.models, 50);
}

}  // namespace
}  // namespace reprise
