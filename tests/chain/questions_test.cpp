// What a chain and a schedule say about themselves, before anything has run and afterwards; moving a chain; lists of
// layers.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "chain/toy.h"
#include "reprise/chain/loop.h"
#include "support/temporary_folder.h"

namespace reprise::questions_test {
namespace {

using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::TemporaryFolder;
using testing::Toy;

const Numbers input = some_numbers(8, 1), seed = some_numbers(8, 2);

// The layers after which, and before which, a state is remembered.
std::string after(const SchedulePointer& schedule, Id layers) {
  std::string text;
  for (Id k = 0; k < layers; ++k) text += schedule->remembers(layers, k) ? std::to_string(k) + " " : "";
  return text;
}
std::string before(const SchedulePointer& schedule, Id layers) {
  std::string text;
  for (Id k = 0; k < layers; ++k) text += schedule->remembers_before(layers, k) ? std::to_string(k) + " " : "";
  return text;
}

// The picture in docs/guide.md.
TEST(ChainQuestions, WhichStatesOfSixLayersAreRememberedIsKnownBeforeAnythingHasRun) {
  EXPECT_EQ(before(schedule::every(3), 6), "0 3 4 5 ");
  EXPECT_EQ(after(schedule::every(3), 6), "2 3 4 ");
  EXPECT_EQ(before(schedule::after({0, 3}), 6), "0 1 4 ");
  EXPECT_EQ(after(schedule::after({3, 0, 3}), 6), "0 3 ");
  EXPECT_EQ(before(schedule::slots(2), 6), "0 3 5 ") << "backward needs the last one at once";
  EXPECT_EQ(before(schedule::everything(), 6), "0 1 2 3 4 5 ");
  EXPECT_EQ(before(schedule::online(1), 6), "0 ");
  EXPECT_EQ(after(schedule::after({5}), 6), "") << "the result is the caller's";
}

TEST(ChainQuestions, TheAnswerIsWhatAChainRemembersWhenForwardIsOver) {
  const TemporaryFolder folder;
  for (const auto& schedule : {schedule::everything(), schedule::every(4), schedule::every(3, 2), schedule::slots(1),
                               schedule::slots(4), schedule::online(3), schedule::selective(5), schedule::after({2, 9}),
                               schedule::memory_and_disk({.memory_slots = 2, .disk_slots = 3})}) {
    for (const int layers : {1, 2, 7, 23}) {
      if (schedule->text().starts_with("after") && layers < 10) continue;
      const Toy toy;
      auto chain = toy.chain(layers);
      chain.schedule(schedule);
      chain.disk({.folder = folder.path()});
      (void)chain.forward(input);
      for (Id k = 0; k < layers; ++k) {
        EXPECT_EQ(schedule->remembers(layers, k), chain.remembers(k)) << schedule->text() << " " << layers << " " << k;
      }
    }
  }
}

TEST(ChainQuestions, WhatCannotBeAnsweredIsSaid) {
  EXPECT_THROW((void)schedule::every(2)->remembers(4, 4), BadOption);
  EXPECT_THROW((void)schedule::every(2)->remembers_before(4, -1), BadOption);
  EXPECT_THROW((void)schedule::budget(100)->remembers(4, 1), BadOption) << "sizes matter";
  EXPECT_FALSE(schedule::budget(1000)->remembers(equal_layers(4), 3));
  EXPECT_THROW((void)schedule::after({-1}), BadOption);
  EXPECT_THROW((void)schedule::after({4})->plan(equal_layers(4)), BadOption);
}

TEST(ChainQuestions, ASchedulesOwnCostsOrTheirSum) {
  ChainForm form = equal_layers(8);
  const double costs[] = {60, 60, 60, 150, 20, 20, 99, 100};
  for (int k = 0; k < 8; ++k) form.layers[k].forward_cost = costs[k];
  std::vector<Id> by_sum, by_own;
  for (Id k = 0; k < 8; ++k) {
    if (schedule::selective(100)->remembers(form, k)) by_sum.push_back(k);
    if (schedule::costly_layers(100)->remembers(form, k)) by_own.push_back(k);
  }
  EXPECT_EQ(by_sum, (std::vector<Id>{1, 3, 6}));
  EXPECT_EQ(by_own, (std::vector<Id>{3})) << "and layer 7, whose state is the result";
  const Toy toy;
  auto chain = toy.chain(8);
  chain.sizes(form);
  chain.schedule(schedule::costly_layers(100));
  const auto plain = toy.plain(first_layers(8), input, seed);
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_TRUE(chain.remembers(3));
  EXPECT_EQ(chain.statistics().remembered, 2u);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

TEST(ChainQuestions, EverySettingCanBeReadBack) {
  const TemporaryFolder folder;
  const Toy toy;
  auto chain = toy.chain({4, 2, 7});
  EXPECT_EQ(chain.layers().size(), 3);
  EXPECT_EQ(chain.layers().number(1), 2);
  EXPECT_EQ(chain.schedule()->text(), "every(4, 64)");
  const auto mine = schedule::slots(3);
  chain.schedule(mine);
  EXPECT_EQ(chain.schedule(), mine);
  EXPECT_EQ(chain.codec(), nullptr);
  chain.codec(codec("zstd"));
  EXPECT_EQ(chain.codec(), &codec("zstd"));
  EXPECT_FALSE(chain.disk());
  chain.disk({.folder = folder.path(), .budget = 1000});
  EXPECT_EQ(chain.disk()->budget, 1000);
  EXPECT_EQ(chain.verify(), Verify::first_time);
  chain.verify(Verify::always);
  EXPECT_EQ(chain.verify(), Verify::always);
  chain.by_hand({.maximum = 5});
  EXPECT_EQ(chain.by_hand(), (ByHand{.maximum = 5}));
  EXPECT_FALSE(chain.observer());
  chain.observer([](const ChainProgress&) {});
  EXPECT_TRUE(chain.observer());
  EXPECT_EQ(schedule::budget(64)->text(), "budget(64)");
  EXPECT_EQ(schedule::every(2, std::nullopt)->text(), "every(2, std::nullopt)");
  EXPECT_EQ(schedule::after({3, 1})->text(), "after({1, 3})");
  EXPECT_EQ(schedule::costly_layers(7)->text(), "costly_layers(7)");
}

TEST(ChainQuestions, StatisticsCanBePrinted) {
  const Toy toy;
  auto chain = toy.chain(6);
  (void)chain.forward(input);
  (void)chain.backward(seed);
  std::ostringstream text;
  text << chain.statistics();
  EXPECT_NE(text.str().find("backward calls   6\n"), std::string::npos) << text.str();
}

TEST(ChainQuestions, AScheduleThatDecidesNeedsNoPlan) {
  class Own : public Schedule {
   public:
    std::unique_ptr<ChainDecisions> decisions() const override { return schedule::online(2)->decisions(); }
  };
  const Own own;
  EXPECT_THROW((void)own.plan(equal_layers(3)), BadOption);
  EXPECT_TRUE(own.remembers_before(5, 0));
  EXPECT_EQ(own.text(), "a schedule of the caller's");
}

// ---- moving ----

Chain<Numbers> configured(const Toy& toy) {
  auto chain = toy.chain(9);
  chain.schedule(schedule::every(2));
  return chain;
}

TEST(ChainMove, AChainCanBeReturnedKeptInContainersAndMovedInTheMiddleOfAPass) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(9), input, seed);
  std::vector<Chain<Numbers>> chains;
  for (int k = 0; k < 5; ++k) {
    chains.push_back(configured(toy));
    EXPECT_EQ(chains.back().forward(input), plain.result);
  }
  std::map<std::string, Chain<Numbers>> named;
  named.emplace("last", std::move(chains.back()));
  chains.pop_back();
  EXPECT_EQ(named.at("last").backward(seed), plain.gradient);
  chains.front() = std::move(chains.back());
  EXPECT_EQ(chains.front().backward(seed), plain.gradient);
}

// ---- lists ----

TEST(ChainLists, OfAnyWholeNumbersAndWrittenInPlace) {
  const Toy toy;
  const auto plain = toy.plain({0, 2, 1}, input, seed);
  const std::vector<std::size_t> sizes{0, 2, 1};
  for (auto* make : {+[](const Toy& t) {
                       return t.chain({0, 2, 1});
                     },
                     +[](const Toy& t) {
                       return t.chain(std::vector<std::size_t>{0, 2, 1});
                     },
                     +[](const Toy& t) {
                       return t.chain(std::vector<int>{0, 2, 1});
                     }}) {
    auto chain = make(toy);
    EXPECT_EQ(chain.forward(input), plain.result);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
  }
  EXPECT_EQ(toy.chain(ChainLayers{3}).layers().size(), 3) << "one number is a count";
  EXPECT_THROW(toy.chain(std::vector<std::size_t>{1, std::size_t{1} << 40}), BadOption);
}

}  // namespace
}  // namespace reprise::questions_test
