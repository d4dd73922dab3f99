// Random chains: any schedule, kind of closure, codec, place and beginning, with closures that throw at any call and
// passes that are resumed. Whatever happens, the bits are those of everything remembered.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <stdexcept>

#include "chain/toy.h"
#include "store/store_support.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::TemporaryFolder;
using testing::Toy;

class RandomChain {
 public:
  explicit RandomChain(std::uint64_t seed) : random_(seed) {}

  void run() {
    const int layers = below(25);
    plain_ = toy_.plain(first_layers(layers), input_, seed_);
    Chain<Numbers> chain = make(layers);
    if (below(2) == 0) chain.codec(codec(below(2) == 0 ? "exact" : "zstd"));
    const bool keeps = below(2) == 0;
    chain.disk({.folder = folder_.path(), .keep = keeps}, std::nullopt, &files_);
    for (int pass = 0; pass < 3; ++pass) {
      chain.schedule(schedule(layers));
      const int first = below(3) == 0 ? below(layers + 1) : 0;
      bool again = false;
      for (int tries = 0;; ++tries) {
        calls_left_ = tries < 4 && below(2) == 0 ? below(3 * layers + 1) : 1'000'000;
        try {
          if (keeps && again) (void)chain.resume();
          Numbers result = chain.forward(plain_.states[first], first);
          ASSERT_EQ(result, plain_.result) << said(chain, first);
          Numbers gradient = chain.backward(seed_);
          for (int k = first; k-- > 0;) gradient = toy_.backward(k, plain_.states[k], gradient);
          ASSERT_EQ(gradient, plain_.gradient) << said(chain, first);
          ASSERT_EQ(chain.statistics().stored, 0) << said(chain, first);
          break;
        } catch (const std::runtime_error& error) {
          ASSERT_STREQ(error.what(), "thrown by a closure") << said(chain, first);
          again = true;
          if (below(3) == 0) chain.schedule(schedule(layers));
        }
      }
    }
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, std::max(n, 1) - 1)(random_); }

  SchedulePointer schedule(int layers) {
    switch (below(8)) {
      case 0: return schedule::everything();
      case 1: return schedule::every(1 + below(8), 1 + below(10));
      case 2: return schedule::slots(1 + below(6));
      case 3: return schedule::online(1 + below(5));
      case 4: return schedule::selective(below(6));
      case 5: return schedule::costly_layers(below(3));
      case 6:
        return schedule::memory_and_disk(
            {.memory_slots = below(3), .disk_slots = 1 + below(4), .write_cost = below(3) * 1.0, .read_cost = 1});
      default: break;
    }
    std::vector<Id> positions;
    for (int k = below(5); k > 0 && layers > 0; --k) positions.push_back(below(layers));
    return schedule::after(std::move(positions));
  }

  void call() {
    if (calls_left_-- <= 0) throw std::runtime_error("thrown by a closure");
  }
  Chain<Numbers> make(int layers) {
    const auto backward = [this](int layer, const Numbers& x, const Numbers& gradient) {
      call();
      return toy_.backward(layer, x, gradient);
    };
    const auto forward = [this](int layer, const Numbers& x) {
      call();
      return toy_.forward(layer, x);
    };
    switch (below(3)) {
      case 0: return {layers, forward, backward};
      case 1: return {layers, [forward](int layer, Numbers& x) { x = forward(layer, x); }, backward};
      default: break;
    }
    return {layers, [forward](int layer, const Numbers& x, Numbers& y) { y = forward(layer, x); }, backward};
  }
  static std::string said(const Chain<Numbers>& chain, int first) {
    return chain.schedule()->text() + " of " + std::to_string(chain.layers().size()) + " layers from " +
           std::to_string(first) + (chain.disk()->keep ? ", kept" : "");
  }

  std::mt19937_64 random_;
  const Toy toy_;
  const Numbers input_ = some_numbers(7, 1), seed_ = some_numbers(7, 2);
  Toy::Plain plain_;
  const TemporaryFolder folder_;
  testing::WatchedFiles files_;  // which does not sync
  int calls_left_ = 0;
};

TEST(RandomChains, GiveTheBitsOfEverythingRememberedWhateverThrows) {
  const bool is_long = std::getenv("REPRISE_LONG") != nullptr;
  const std::uint64_t first = is_long ? std::random_device()() : 1;
  for (std::uint64_t seed = first; seed < first + (is_long ? 5000 : 100); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomChain(seed).run();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace reprise
