#include "chain/storage_account.h"

#include <gtest/gtest.h>

#include "chain/pass_fixture.h"
#include "chain/toy.h"

namespace reprise::storage_account_test {
namespace {

using testing::expect_chain_error;
using testing::PassFixture;

TEST(StorageAccount, ReservesUpToTheLimitWithWhatTiersHaveInMemory) {
  PassFixture all(1);
  internal::StorageAccount& account = all.context.account;
  EXPECT_NO_THROW(account.reserve(1'000'000, 0)) << "without a limit";
  account.set_limit(100);
  account.add(60);
  EXPECT_NO_THROW(account.reserve(40, 7));
  expect_chain_error([&] { account.reserve(41, 7); },
                     "budget is 100 bytes, of which 60 are taken: the 41 that layer 7 needs");
  all.context.tiers.put(StateTier::packed, 0, testing::List(30));
  expect_chain_error([&] { account.reserve(11, 7); }, "of which 90 are taken");
  EXPECT_EQ(account.statistics.stored, 60) << "tiers are counted when they change";
  account.count_tiers();
  EXPECT_EQ(account.statistics.stored, 90);
  EXPECT_EQ(account.statistics_now().stored, 90);
}

TEST(StorageAccount, AReplacementHasBothStatesForAMoment) {
  PassFixture all(1);
  internal::StorageAccount& account = all.context.account;
  account.add(50);
  account.add_remembered();
  account.replace(50, 70);
  EXPECT_EQ(account.statistics.stored, 70);
  EXPECT_EQ(account.statistics.peak_stored, 120);
  EXPECT_EQ(account.statistics.remembered, 1u);
  EXPECT_EQ(account.statistics.peak_remembered, 2u);
}

TEST(StorageAccount, ClearingKeepsPeaksAndCalls) {
  PassFixture all(1);
  internal::StorageAccount& account = all.context.account;
  account.set_limit(100);
  account.add(80);
  account.add_remembered();
  account.statistics.forward_calls = 3;
  account.clear();
  EXPECT_EQ(account.statistics.stored, 0);
  EXPECT_EQ(account.statistics.remembered, 0u);
  EXPECT_EQ(account.statistics.peak_stored, 80);
  EXPECT_EQ(account.statistics.forward_calls, 3u);
  EXPECT_NO_THROW(account.reserve(1000, 0)) << "and no limit";
}

}  // namespace
}  // namespace reprise::storage_account_test
