// The table of transfers, walked: what it promises by itself, and a tier of vectors that takes every way through it.
#include "torch/offload/transfer_tier.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "reprise/torch/errors.h"
#include "torch/memory/arbiter.h"

namespace reprise::testing {
using namespace internal;
namespace {

using State = TransferState;

// ---- the table -----------------------------------------------------------------------------------------------------

std::set<State> reachable_from(State start) {
  std::set<State> seen{start};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [from, to, when] : transfer_transitions) more |= seen.contains(from) && seen.insert(to).second;
  }
  return seen;
}

TEST(TransferTable, ReachesEveryStateAndLeavesEachButTheLast) {
  const std::set<State> reached = reachable_from(State::to_put);
  EXPECT_EQ(reached.size(), static_cast<std::size_t>(State::removed) + 1);
  for (const State state : reached) EXPECT_TRUE(reachable_from(state).contains(State::removed));
  EXPECT_EQ(reachable_from(State::removed).size(), 1u);
}

TEST(TransferTable, NamesEachTransitionOnce) {
  std::set<std::pair<State, State>> seen;
  for (const auto& [from, to, when] : transfer_transitions) {
    EXPECT_TRUE(seen.emplace(from, to).second) << when;
    EXPECT_TRUE(may_become(from, to));
    EXPECT_NE(*when, '\0');
  }
}

TEST(TransferTable, VerifiesOnlyWhatWasHandedOutAndTrustsNothingThatFailed) {
  for (int state = 0; state <= static_cast<int>(State::removed); ++state) {
    const auto from = static_cast<State>(state);
    EXPECT_EQ(may_become(from, State::verified), from == State::reloaded);
    EXPECT_EQ(may_become(from, State::reloaded), from == State::arrived);
  }
  for (const State end : {State::lost, State::failed}) {
    EXPECT_EQ(reachable_from(end), (std::set{end, State::to_remove, State::removed}));
  }
}

// ---- a tier that walks it ------------------------------------------------------------------------------------------

class VectorTier final : public TransferTier {
 public:
  explicit VectorTier(bool on_streams)
      : TransferTier(c10::Device(c10::DeviceType::CPU), on_streams ? Runs::on_streams : Runs::on_thread, 1 << 20,
                     {.name = "vectors"}, TierAccount::Learns::nothing) {}

  void report(Summary&, const TierTotals&) const override {}
  [[nodiscard]] std::exception_ptr lost_error(const std::string& why) const override {
    return std::make_exception_ptr(SessionError(why));
  }
  void end() noexcept override { lose_all("the end"); }

  bool fails = false, damages = false;
  std::function<void(State)> under_way = [](State) {};

 private:
  struct Contents final : TierContents {
    [[nodiscard]] Bytes mark_at_rest_after_fork() override { return 0; }
    std::vector<std::byte> bytes;
  };

  std::unique_ptr<TierContents> store(TierTransfer& transfer) override {
    under_way(transfer.state);
    if (fails) throw SessionError("it cannot be put");
    auto contents = std::make_unique<Contents>();
    contents->bytes.resize(transfer.bytes);
    std::memcpy(contents->bytes.data(), transfer.memory.storage.data(), transfer.bytes);
    if (damages) contents->bytes[0] ^= std::byte{1};
    return contents;
  }
  void load(TierTransfer& transfer) override {
    under_way(transfer.state);
    if (fails) throw SessionError("it cannot be got");
    std::memcpy(transfer.memory.storage.mutable_data(), static_cast<Contents&>(*transfer.contents).bytes.data(),
                transfer.bytes);
  }
};

class TransferWalk : public ::testing::TestWithParam<bool> {
 protected:
  TransferWalk() {
    tier_->under_way = [this](State state) { step(state); };
  }

  // A new copy.
  void begin(bool verify = false) {
    walked_ = {State::to_put};
    {
      const Arbiter lock;
      copy_ = tier_->put(x_.storage(), {}, verify);
      look();
    }
    look();  // puts on streams begin as soon as the arbiter is free
  }
  void look() { step(copy_->state()); }
  // The copy is in this state now, if it was not before.
  void step(State now) {
    if (walked_.back() != now) walked_.push_back(now);
  }
  // What the copy was seen to be so far, which is what the table allows.
  void expect(const std::vector<State>& states) {
    look();
    EXPECT_EQ(walked_, states);
    for (std::size_t i = 1; i < walked_.size(); ++i) EXPECT_TRUE(reachable_from(walked_[i - 1]).contains(walked_[i]));
  }
  void put() {
    begin();
    copy_->finish_put();
    walked_ = {State::stored};
    look();
  }
  void reload() {
    const c10::Storage back = copy_->contents();
    EXPECT_EQ(std::memcmp(back.data(), x_.storage().data(), back.nbytes()), 0);
  }

  const std::shared_ptr<VectorTier> tier_ = std::make_shared<VectorTier>(GetParam());
  const at::Tensor x_ = at::arange(1000, at::kFloat);
  std::shared_ptr<const TierCopy> copy_;
  std::vector<State> walked_;
};
INSTANTIATE_TEST_SUITE_P(OnAThreadAndOnStreams, TransferWalk, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "streams" : "thread"; });

TEST_P(TransferWalk, GoesThereAndComesBack) {
  begin();
  reload();  // from the memory that it is still in
  expect(GetParam() ? std::vector{State::to_put, State::putting, State::put} : std::vector{State::to_put});
  copy_->finish_put();
  const std::vector<State> there = GetParam() ? std::vector{State::to_put, State::putting, State::put, State::stored}
                                              : std::vector{State::to_put, State::putting, State::stored};
  expect(there);
  walked_ = {State::stored, State::to_get};
  reload();
  expect({State::stored, State::to_get, State::getting, State::reloaded});
  reload();
  EXPECT_FALSE(copy_->verified());
}

TEST_P(TransferWalk, IsVerifiedWhenItComesBack) {
  begin(true);
  copy_->finish_put();
  walked_ = {State::arrived, State::reloaded};
  tier_->under_way = [](State) {};
  reload();
  expect({State::arrived, State::reloaded, State::verified});
  reload();
  EXPECT_TRUE(copy_->verified());
}

TEST_P(TransferWalk, FailsIfOtherBitsComeBackAndNamesTheTier) {
  tier_->damages = true;
  begin(true);
  copy_->finish_put();
  try {
    (void)copy_->contents();
    FAIL() << "nobody has compared it";
  } catch (const MismatchError& error) {
    EXPECT_EQ(error.facts().reloaded_from, "vectors");
  }
  EXPECT_EQ(copy_->state(), State::failed);
  EXPECT_TRUE(copy_->usable()) << "a replay would hide it";
  EXPECT_THROW((void)copy_->contents(), MismatchError);
  EXPECT_EQ(tier_->totals().failures, 1);
}

TEST_P(TransferWalk, IsLostIfItCannotBePut) {
  tier_->fails = true;
  begin();
  copy_->finish_put();
  expect({State::to_put, State::putting, State::lost});
  EXPECT_FALSE(copy_->usable());
  EXPECT_THROW((void)copy_->contents(), SessionError);
}

TEST_P(TransferWalk, IsLostOnAThreadAndFailedOnStreamsIfItCannotBeGot) {
  put();
  tier_->fails = true;
  EXPECT_THROW((void)copy_->contents(), SessionError);
  EXPECT_EQ(copy_->state(), GetParam() ? State::failed : State::lost) << "a device that failed is not to be hidden";
}

TEST_P(TransferWalk, IsGivenUpWhenItWasFetchedAndFetchedAgain) {
  put();
  for (int i = 0; i < 2; ++i) {
    copy_->fetch();
    EXPECT_EQ(copy_->state(), GetParam() ? State::arrived : State::to_get);
    EXPECT_TRUE(copy_->fetched());
    if (i == 0) {
      EXPECT_TRUE(tier_->give_up_fetched());
    } else {
      copy_->give_up_fetched();
    }
    EXPECT_EQ(copy_->state(), State::stored);
    EXPECT_FALSE(tier_->give_up_fetched());
  }
  reload();
}

TEST_P(TransferWalk, IsRemovedFromWhereverItIsDropped) {
  const std::vector<std::function<void()>> ways = {[&] { begin(); }, [&] { put(); }, [&] { put(), copy_->fetch(); },
                                                   [&] { put(), reload(); },
                                                   [&] { begin(), (void)tier_->drain_completed(); }};
  for (const auto& go : ways) {
    go();
    copy_.reset();
    tier_->finish_all();
    EXPECT_EQ(x_.storage().use_count(), 1u);
  }
}

TEST_P(TransferWalk, IsLostWhereverItIsWhenTheProcessEnds) {
  for (const bool fetched : {false, true}) {
    put();
    if (fetched) copy_->fetch();
    tier_->end();
    EXPECT_EQ(copy_->state(), State::lost);
    EXPECT_THROW((void)copy_->contents(), SessionError);
  }
}

}  // namespace
}  // namespace reprise::testing
