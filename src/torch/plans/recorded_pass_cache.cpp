#include "torch/plans/recorded_pass_cache.h"

#include <algorithm>

namespace reprise::internal {
namespace {

constexpr std::size_t most_passes = 256;
constexpr std::size_t fewest_passes = 2;  // whatever their bytes: the step at hand, and the one before it
constexpr double ageing = 0.99;           // of uses, with each pass that goes
constexpr std::size_t patience = 32;      // new ones in a row, at least, before it is clear that steps differ
constexpr std::size_t most_gone = 1024;   // that are remembered by their hash

bool same_moments(const RecordedPass& a, const RecordedPass& b) {
  const auto& mine = a.recipes->operators;
  const auto& theirs = b.recipes->operators;
  return a.recipes->values.size() == b.recipes->values.size() &&
         std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                    [](const Recipe& x, const Recipe& y) { return x.info == y.info; }) &&
         std::equal(a.profile.moments.begin(), a.profile.moments.end(), b.profile.moments.begin(),
                    b.profile.moments.end(),
                    [](const ProfiledMoment& x, const ProfiledMoment& y) { return x.op == y.op && x.name == y.name; });
}

// The same if it is recorded once more.
std::uint64_t hash_of(const RecordedPass& pass) {
  std::uint64_t hash = pass.recipes->operators.size();
  const auto add = [&](std::uint64_t number) {
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  const Recipes& recipes = *pass.recipes;
  for (const Recipe& recipe : recipes.operators) add(recipe.structural_hash.back());
  for (const Output& output : recipes.outputs) add(static_cast<std::uint64_t>(recipes.values[output.value].bytes));
  return hash;
}

}  // namespace

void RecordedPassCache::add(std::shared_ptr<RecordedPass> pass, Bytes most_bytes) {
  for (const auto& other : all_) {
    std::erase_if(other->common, [](const auto& one) { return one.first.expired(); });
    const Id common = common_operators(*other->recipes, *pass->recipes);
    other->common.emplace_back(pass, common);
    pass->common.emplace_back(other, common);
  }
  look_for(*pass);
  all_.push_back(std::move(pass));
  ++new_in_a_row_;
  keep_within(most_bytes);
}

void RecordedPassCache::keep_within(Bytes most_bytes) {
  if (hardly_any_comes_again()) part_ = least_part;
  most_bytes /= part_;
  Bytes bytes = 0;
  for (const auto& one : all_) bytes += one->bytes();
  while (all_.size() > fewest_passes && (all_.size() > most_passes || bytes > most_bytes)) bytes -= let_one_go();
}

// It was known, and would be if there had been more room.
void RecordedPassCache::look_for(const RecordedPass& pass) {
  const auto found = std::find(gone_.begin(), gone_.end(), hash_of(pass));
  if (found == gone_.end()) return;
  gone_.erase(found);
  part_ = std::max<Bytes>(1, part_ / 2);
  new_in_a_row_ = 0;
}

// All that there is room for went by twice, and none of it was met again.
bool RecordedPassCache::hardly_any_comes_again() const {
  return static_cast<std::size_t>(new_in_a_row_) > std::max(patience, 2 * all_.size());
}

// Among those that were used equally little it is each one's turn: of shapes that come in a long circle some stay until
// they are met again, where letting the oldest go would meet none.
Bytes RecordedPassCache::let_one_go() {
  const auto candidates = all_.end() - static_cast<std::ptrdiff_t>(fewest_passes);
  double least = (*all_.begin())->uses;
  for (auto one = all_.begin(); one != candidates; ++one) least = std::min(least, (*one)->uses);
  std::vector<std::ptrdiff_t> least_used;
  for (auto one = all_.begin(); one != candidates; ++one) {
    if ((*one)->uses < least + 0.5) least_used.push_back(one - all_.begin());
  }
  priority_ =
      priority_ * 1664525u + 1013904223u;  // a generator of its own: the program's random numbers stay what they are
  const auto gone = all_.begin() + least_used[(priority_ >> 16) % least_used.size()];
  const Bytes bytes = (*gone)->bytes();
  gone_.push_back(hash_of(**gone));
  if (gone_.size() > most_gone) gone_.pop_front();
  all_.erase(gone);
  for (const auto& one : all_) one->uses *= ageing;
  return bytes;
}

void RecordedPassCache::met_again(RecordedPass& pass) {
  ++pass.uses;
  new_in_a_row_ = 0;
}

std::shared_ptr<RecordedPass> RecordedPassCache::find_similar(const RecordedPass& pass) const {
  const auto relative = std::find_if(all_.rbegin(), all_.rend(), [&](const std::shared_ptr<RecordedPass>& other) {
    return other.get() != &pass && other->plan && same_moments(*other, pass);
  });
  return relative == all_.rend() ? nullptr : *relative;
}

std::shared_ptr<RecordedPass> RecordedPassCache::of(const Recipes& recipes) const {
  for (const auto& pass : all_) {
    if (pass->recipes.get() == &recipes) return pass;
  }
  return nullptr;
}

}  // namespace reprise::internal
