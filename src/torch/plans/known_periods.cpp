#include "torch/plans/known_periods.h"

#include <algorithm>

namespace reprise::internal {
namespace {

constexpr std::size_t most_periods = 256;
constexpr std::size_t fewest_periods = 2;  // whatever their bytes: the step at hand, and the one before it
constexpr double ageing = 0.99;            // of uses, with each period that goes
constexpr std::size_t patience = 32;       // new ones in a row, at least, before it is clear that steps differ
constexpr std::size_t most_gone = 1024;    // that are remembered by their hash

bool same_moments(const Period& a, const Period& b) {
  const auto& mine = a.recipes->operators;
  const auto& theirs = b.recipes->operators;
  return a.recipes->values.size() == b.recipes->values.size() &&
         std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                    [](const Recipe& x, const Recipe& y) { return x.info == y.info; }) &&
         std::equal(a.seen.moments.begin(), a.seen.moments.end(), b.seen.moments.begin(), b.seen.moments.end(),
                    [](const ObservedMoment& x, const ObservedMoment& y) { return x.op == y.op && x.name == y.name; });
}

// The same if it is recorded once more.
std::uint64_t hash_of(const Period& period) {
  std::uint64_t hash = period.recipes->operators.size();
  const auto add = [&](std::uint64_t number) {
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  const Recipes& recipes = *period.recipes;
  for (const Recipe& recipe : recipes.operators) add(recipe.likeness.back());
  for (const Output& output : recipes.outputs) add(static_cast<std::uint64_t>(recipes.values[output.value].bytes));
  return hash;
}

}  // namespace

void KnownPeriods::add(std::shared_ptr<Period> period, Bytes most_bytes) {
  for (const auto& other : all_) {
    std::erase_if(other->common, [](const auto& one) { return one.first.expired(); });
    const Id common = common_operators(*other->recipes, *period->recipes);
    other->common.emplace_back(period, common);
    period->common.emplace_back(other, common);
  }
  look_for(*period);
  all_.push_back(std::move(period));
  ++new_in_a_row_;
  keep_within(most_bytes);
}

void KnownPeriods::keep_within(Bytes most_bytes) {
  if (hardly_any_comes_again()) part_ = least_part;
  most_bytes /= part_;
  Bytes bytes = 0;
  for (const auto& one : all_) bytes += one->bytes();
  while (all_.size() > fewest_periods && (all_.size() > most_periods || bytes > most_bytes)) bytes -= let_one_go();
}

// It was known, and would be if there had been more room.
void KnownPeriods::look_for(const Period& period) {
  const auto found = std::find(gone_.begin(), gone_.end(), hash_of(period));
  if (found == gone_.end()) return;
  gone_.erase(found);
  part_ = std::max<Bytes>(1, part_ / 2);
  new_in_a_row_ = 0;
}

// All that there is room for went by twice, and none of it was met again.
bool KnownPeriods::hardly_any_comes_again() const {
  return static_cast<std::size_t>(new_in_a_row_) > std::max(patience, 2 * all_.size());
}

// Among those that were used equally little it is each one's turn: of shapes that come in a long circle some stay until
// they are met again, where letting the oldest go would meet none.
Bytes KnownPeriods::let_one_go() {
  const auto candidates = all_.end() - static_cast<std::ptrdiff_t>(fewest_periods);
  double least = (*all_.begin())->uses;
  for (auto one = all_.begin(); one != candidates; ++one) least = std::min(least, (*one)->uses);
  std::vector<std::ptrdiff_t> least_used;
  for (auto one = all_.begin(); one != candidates; ++one) {
    if ((*one)->uses < least + 0.5) least_used.push_back(one - all_.begin());
  }
  turn_ = turn_ * 1664525u + 1013904223u;  // a generator of its own: nobody's random numbers change
  const auto gone = all_.begin() + least_used[(turn_ >> 16) % least_used.size()];
  const Bytes bytes = (*gone)->bytes();
  gone_.push_back(hash_of(**gone));
  if (gone_.size() > most_gone) gone_.pop_front();
  all_.erase(gone);
  for (const auto& one : all_) one->uses *= ageing;
  return bytes;
}

void KnownPeriods::met_again(Period& period) {
  ++period.uses;
  new_in_a_row_ = 0;
}

std::shared_ptr<Period> KnownPeriods::relative_of(const Period& period) const {
  const auto relative = std::find_if(all_.rbegin(), all_.rend(), [&](const std::shared_ptr<Period>& other) {
    return other.get() != &period && other->plan && same_moments(*other, period);
  });
  return relative == all_.rend() ? nullptr : *relative;
}

std::shared_ptr<Period> KnownPeriods::of(const Recipes& recipes) const {
  for (const auto& period : all_) {
    if (period->recipes.get() == &recipes) return period;
  }
  return nullptr;
}

}  // namespace reprise::internal
