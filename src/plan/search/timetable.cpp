#include "plan/search/timetable.h"

#include <algorithm>
#include <limits>

namespace reprise::internal {

Timetable::Timetable(const Problem& problem) : problem_(problem), start_(problem.moments) {
  reset();
}

void Timetable::reset() {
  std::vector<Id> plain(problem_.moments);
  for (Id m = 0; m < problem_.moments; ++m) plain[m] = m;
  load(plain);
}

bool Timetable::load(const std::vector<Id>& nodes) {
  const Id firsts = problem_.moments + 1;  // the start is one of them
  node_.assign(firsts, nowhere);
  moment_.assign(firsts, nowhere);
  place_.assign(firsts, {});
  repeat_index_.assign(firsts, -1);
  first_stay_.assign(firsts, -1);
  alive_.assign(firsts, 1);
  batch_of_.assign(firsts, 0);
  spare_.assign(problem_.nodes, {});
  occurrences_of_.assign(problem_.nodes, {});
  repeats_.clear();
  stay_value_.clear();
  stay_birth_.clear();
  stay_end_.clear();
  stays_of_.assign(problem_.values, {});
  anchors_.clear();
  blocks_.clear();
  summaries_.clear();
  order_of_blocks_.clear();
  rank_.clear();
  log_.clear();
  batch_ = 0;
  cost_ = over_bytes_ = 0;
  over_count_ = 0;

  const auto add_stay = [&](Id value, Occurrence birth, bool real) {
    stay_value_.push_back(value);
    stay_birth_.push_back(birth);
    stay_end_.push_back(real ? birth : -1);
    if (real) stays_of_[value].push_back(stay_count() - 1);
  };
  const auto add_anchors = [&](Id key, Occurrence birth) {
    for (const Id v : problem_.anchored[key]) {
      add_stay(v, birth, true);
      anchors_.push_back(stay_count() - 1);
    }
  };
  const auto use = [&](Id value, Occurrence at) {
    if (held_at(value, at)) return true;
    if (stays_of_[value].empty()) return false;
    const Stay s = stays_of_[value].back();
    if (crosses_take_over(value, stay_birth_[s], at)) return false;
    stay_end_[s] = at;
    return true;
  };

  std::vector<Occurrence> sequence;
  sequence.reserve(nodes.size() + 1);
  std::vector<Bytes> own;  // bytes of an occurrence that are there whatever stays cover it
  own.reserve(nodes.size() + 1);
  sequence.push_back(start_);
  own.push_back(0);
  add_anchors(problem_.moments, start_);

  Id next_moment = 0;
  bool valid = true;
  for (const Id n : nodes) {
    if (next_moment == problem_.moments) break;  // repeats after the last moment serve nobody
    const bool first = n == next_moment;
    if (!first && ((n < problem_.moments && n > next_moment) || !problem_.may_repeat[n])) {
      valid = false;
      break;
    }
    Occurrence o = n;
    if (!first) {
      o = new_occurrence(n);
      repeat_index_[o] = static_cast<Id>(repeats_.size());
      repeats_.push_back(o);
      moment_[o] = next_moment;
    } else {
      node_[o] = moment_[o] = n;
      first_stay_[o] = stay_count();
    }
    for (const Id v : problem_.inputs[n]) valid = valid && use(v, o);
    if (first) {
      for (const Id v : problem_.timeline.hold_starts(n)) {
        if (problem_.extra_need[v] == n) valid = valid && use(v, o);
      }
      for (const Id v : problem_.outputs[n]) add_stay(v, o, problem_.zone_first[v] != n);
      add_anchors(n, o);
      own.push_back(problem_.at[n]);
      ++next_moment;
    } else {
      Stay s = first_stay_[o];
      for (const Id v : problem_.outputs[n]) {
        if (!held_at(v, o)) {
          stay_end_[s] = o;
          stays_of_[v].push_back(s);
        }
        ++s;
      }
      own.push_back(problem_.before[next_moment] + problem_.workspace[n] + problem_.output_bytes[n]);
    }
    if (!valid) break;
    occurrences_of_[n].push_back(o);
    cost_ += problem_.cost[n];
    sequence.push_back(o);
  }
  if (!valid || next_moment < problem_.moments) {
    reset();
    return false;
  }

  size_ = static_cast<Id>(sequence.size()) - 1;
  std::vector<Id> position(node_.size(), 0);
  for (std::size_t i = 0; i < sequence.size(); ++i) position[sequence[i]] = static_cast<Id>(i);
  std::vector<Bytes> change(sequence.size() + 1, 0);
  for (Stay s = 0; s < stay_count(); ++s) {
    if (!is_stay(s)) continue;
    change[position[stay_birth_[s]] + 1] += problem_.bytes[stay_value_[s]];
    change[position[stay_end_[s]] + 1] -= problem_.bytes[stay_value_[s]];
  }
  Bytes covered = 0;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (i % (capacity / 2) == 0) {
      order_of_blocks_.push_back(static_cast<Id>(blocks_.size()));
      rank_.push_back(static_cast<Id>(blocks_.size()));
      blocks_.emplace_back();
      summaries_.emplace_back();
    }
    Block& b = blocks_.back();
    covered += change[i];
    place_[sequence[i]] = {static_cast<Id>(blocks_.size()) - 1, b.count};
    b.occurrences[b.count] = sequence[i];
    b.live[b.count++] = own[i] + covered;
  }
  for (Id b = 0; b < static_cast<Id>(blocks_.size()); ++b) summarise(b);
  return true;
}

std::vector<Id> Timetable::nodes() const {
  std::vector<Id> result;
  result.reserve(size_);
  for (const Id b : order_of_blocks_) {
    for (Id i = 0; i < blocks_[b].count; ++i) {
      if (blocks_[b].occurrences[i] != start_) result.push_back(node_[blocks_[b].occurrences[i]]);
    }
  }
  return result;
}

Bytes Timetable::peak() const {
  Bytes most = 0;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].count > 0) most = std::max(most, summaries_[b].most + summaries_[b].addend);
  }
  return most;
}

// ---- where things are -----------------------------------------------------------------------------------------------

Occurrence Timetable::next(Occurrence o) const {
  const Place here = place_[o];
  const Block& b = blocks_[here.block];
  if (here.index + 1 < b.count) return b.occurrences[here.index + 1];
  for (Id rank = rank_[here.block] + 1; rank < block_count(); ++rank) {
    if (!block(rank).empty()) return block(rank).front();
  }
  return -1;
}

Occurrence Timetable::previous(Occurrence o) const {
  const Place here = place_[o];
  if (here.index > 0) return blocks_[here.block].occurrences[here.index - 1];
  for (Id rank = rank_[here.block] - 1; rank >= 0; --rank) {
    if (!block(rank).empty()) return block(rank).back();
  }
  return -1;
}

Stay Timetable::latest_before(Id value, Id limit) const {
  const auto& stays = stays_of_[value];
  for (auto s = stays.rbegin(); s != stays.rend(); ++s) {
    if (order(stay_birth_[*s]) < limit) return *s;
  }
  return -1;
}

Stay Timetable::serving(Id value, Occurrence at) const {
  return held_at(value, at) ? -1 : latest_before(value, order(at));
}

Stay Timetable::stay_before(Stay s) const {
  const auto& stays = stays_of_[stay_value_[s]];
  const auto here = std::find(stays.rbegin(), stays.rend(), s);
  return here + 1 == stays.rend() ? -1 : *(here + 1);
}

Occurrence Timetable::last_use_between(Id value, Id after, Id before) const {
  Occurrence best = -1;
  Id best_order = after;
  const bool ever_held = problem_.zone_first[value] != nowhere;
  for (const Id user : problem_.users[value]) {
    const auto& list = occurrences_of_[user];
    for (auto o = list.rbegin(); o != list.rend(); ++o) {
      const Id here = order(*o);
      if (here >= before) continue;
      if (here <= best_order) break;
      if (ever_held && held_at(value, *o)) continue;
      best = *o;
      best_order = here;
      break;
    }
  }
  if (problem_.extra_need[value] != nowhere) {
    const Occurrence o = first_of(problem_.extra_need[value]);
    if (order(o) > best_order && order(o) < before) best = o;
  }
  return best;
}

void Timetable::uses_of(Stay s, std::vector<Occurrence>& uses) const {
  uses.clear();
  const Id value = stay_value_[s];
  const Id after = order(stay_birth_[s]);
  Id before = std::numeric_limits<Id>::max();  // up to where the next stay begins: an anchor may begin at a last use
  const auto& stays = stays_of_[value];
  for (auto other = stays.rbegin(); *other != s; ++other) before = order(stay_birth_[*other]);
  const bool ever_held = problem_.zone_first[value] != nowhere;
  for (const Id user : problem_.users[value]) {
    for (const Occurrence o : occurrences_of_[user]) {
      const Id here = order(o);
      if (here > after && here <= before && !(ever_held && held_at(value, o))) uses.push_back(o);
    }
  }
  if (problem_.extra_need[value] != nowhere) {
    const Occurrence o = first_of(problem_.extra_need[value]);
    const bool counted = std::find(uses.begin(), uses.end(), o) != uses.end();
    if (!counted && order(o) > after && order(o) <= before) uses.push_back(o);
  }
  std::sort(uses.begin(), uses.end(), [&](Occurrence a, Occurrence b) { return order(a) < order(b); });
}

bool Timetable::over_between(Occurrence a, Occurrence b) const {
  const auto any = [&](Id block, Id from, Id to) {
    if (summaries_[block].over_count == 0) return false;
    const Bytes limit = problem_.budget - summaries_[block].addend;
    for (Id i = from; i < to; ++i) {
      if (blocks_[block].live[i] > limit) return true;
    }
    return false;
  };
  const Place from = place_[a], to = place_[b];
  if (from.block == to.block) return any(from.block, from.index + 1, to.index);
  if (any(from.block, from.index + 1, blocks_[from.block].count)) return true;
  for (Id rank = rank_of_block(a) + 1; rank < rank_of_block(b); ++rank) {
    if (over_in_block(rank) > 0) return true;
  }
  return any(to.block, 0, to.index);
}

bool Timetable::agrees_with_itself() const {
  Timetable fresh(problem_);
  if (!fresh.load(nodes())) return false;
  if (fresh.over_count_ != over_count_ || fresh.size_ != size_ || fresh.over_bytes_ != over_bytes_) return false;
  Occurrence mine = start_, theirs = fresh.start_;
  for (; mine >= 0 && theirs >= 0; mine = next(mine), theirs = fresh.next(theirs)) {
    if (live_at(mine) != fresh.live_at(theirs) || moment_[mine] != fresh.moment_[theirs]) return false;
  }
  return mine == theirs;
}

}  // namespace reprise::internal
