// The bytes of a trace are those of the pass. Random programs are storages here, whose live bytes are summed without
// any formula of the trace builder; the pass has what a meter would see of them.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "reprise/simulate/simulate.h"
#include "support/cases.h"
#include "torch/plans/made_pass.h"
#include "torch/plans/trace_builder.h"

namespace reprise::testing {
using namespace internal;
namespace {

// A program that makes, overwrites and needs values, and releases each some time. A storage lives from the moment that
// makes it until its last value is released, and needed no more.
class RandomProgram {
 public:
  // `chained`: operators read nothing but what they write in place, so several of them become one (in_place_chains.h).
  // Otherwise what is written in place was read before, and none do.
  RandomProgram(std::uint64_t seed, bool chained) : random_(seed), chained_(chained) {
    for (int i = number(0, 3); i > 0; --i) add_outside_storage();
    for (int i = number(3, 12); i > 0; --i) add_operator();
    for (int i = number(1, 6); i > 0; --i) add_event();
    release_values();
    for (Id m = 0; m < moments_; ++m) measure(m);
  }

  static constexpr Bytes most_workspace = 500;
  [[nodiscard]] const RecordedPass& pass() { return made_.pass(); }
  [[nodiscard]] Bytes live_while_running(Id moment) const { return live_[moment]; }
  [[nodiscard]] bool is_in_place(Id moment) const { return in_place_[moment]; }

 private:
  static constexpr Id before_the_pass = -1, never = 1 << 20;

  struct Storage {
    Bytes bytes = 0;
    Id made = before_the_pass;
    Id outside = no_value;     // what it holds before the pass, if that was read
    Id value = no_value;       // that an operator made in it
    Id value_made = never;     // the moment
    Id counted_since = never;  // as a value, and not among the other bytes: after this moment
    Id last = never;           // moment at which it is live
    bool is_read = false;      // the value, by an operator that does not write it
  };

  int number(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  bool one_in(int n) { return number(1, n) == 1; }

  // Returns a storage that an operator has made a value in, or none has; null if there is no such storage.
  Storage* choose(bool with_value) {
    std::vector<Storage*> all;
    for (Storage& storage : storages_) {
      if ((storage.value != no_value) == with_value) all.push_back(&storage);
    }
    return all.empty() ? nullptr : all[static_cast<std::size_t>(number(0, static_cast<int>(all.size()) - 1))];
  }
  std::vector<Id> choose_read(Id moment) {
    std::vector<Id> inputs;
    for (int i = number(0, 2); i > 0; --i) {
      Storage* const input = choose(true);
      if (!input) continue;
      input->last = moment;
      input->is_read = true;
      inputs.push_back(input->value);
    }
    return inputs;
  }

  void add_outside_storage() {
    const Bytes bytes = number(1, 1000);
    storages_.push_back({.bytes = bytes, .outside = one_in(2) ? made_.outside(bytes) : no_value});
  }

  void add_operator() {
    const Id moment = moments_++;
    Storage* storage = one_in(3) ? choose(true) : nullptr;
    if (storage && storage->is_read == chained_) storage = nullptr;
    in_place_.push_back(storage != nullptr);
    if (storage) {
      made_.release(storage->value, moment);
      storage->value = made_.run_in_place(storage->value);
    } else if (one_in(4) && (storage = choose(false))) {
      storage->value = made_.run_over(storage->outside, storage->bytes);
      storage->counted_since = moment;
    } else {
      const std::vector<Id> inputs = chained_ ? std::vector<Id>() : choose_read(moment);
      storage = &storages_.emplace_back();
      *storage = {.bytes = number(1, 1000), .made = moment, .counted_since = moment};
      storage->value = made_.run(inputs, storage->bytes);
    }
    storage->value_made = storage->last = moment;
    storage->is_read = false;
  }

  void add_event() {
    made_.event("node", choose_read(moments_++));
    in_place_.push_back(false);
  }

  void release_values() {
    for (Storage& storage : storages_) {
      if (storage.value == no_value) continue;
      Id released = moments_ - 1;
      if (one_in(2)) made_.release(storage.value, released = number(storage.value_made, released));
      storage.last = std::max(storage.last, released);
    }
  }

  void measure(Id m) {
    const Bytes unrelated = number(0, 1000);
    Bytes before = unrelated, counted = 0, made = 0;
    for (const Storage& storage : storages_) {
      if (storage.made == m) made += storage.bytes;
      if (storage.made >= m || storage.last < m) continue;
      before += storage.bytes;
      if (storage.counted_since < m) counted += storage.bytes;
    }
    live_.push_back(before + made + (one_in(2) ? number(1, most_workspace) : 0));
    made_.other(m, before - counted, live_.back() - counted);
  }

  std::mt19937_64 random_;
  const bool chained_;
  MadePass made_;
  std::vector<Storage> storages_;
  Id moments_ = 0;
  std::vector<bool> in_place_;
  std::vector<Bytes> live_;
};

// Where operators in place become one, the last of them has the largest workspace of all.
TEST(TraceBytes, AreThoseThatWereLiveAtEachMoment) {
  for (std::uint64_t seed = 1; seed <= cases(1000) && !HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const bool chained = seed % 2 == 0;
    RandomProgram program(seed, chained);
    const Trace trace = build_trace(program.pass(), false).trace;
    const Plan plan = keep_everything(trace);
    const Simulation simulation = simulate(trace, plan, {.check_budget = false});
    ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence;
    for (std::size_t i = 0; i < plan.actions.size(); ++i) {
      const Id moment = plan.actions[i].target;
      if (plan.actions[i].kind != Action::Kind::run) continue;
      const Bytes live = program.live_while_running(moment);
      EXPECT_GE(simulation.live[i], live) << "at moment " << moment;
      EXPECT_LE(simulation.live[i], live + (chained && program.is_in_place(moment) ? program.most_workspace : 0))
          << "at moment " << moment;
    }
  }
}

}  // namespace
}  // namespace reprise::testing
