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
  clear();
  Reading reading;
  reading.sequence.reserve(nodes.size() + 1);
  reading.own.reserve(nodes.size() + 1);
  if (!read(nodes, reading)) {
    reset();
    return false;
  }
  lay_out(reading);
  return true;
}

void Timetable::clear() {
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
}

// ---- reading a list of nodes ----------------------------------------------------------------------------------------

bool Timetable::read(const std::vector<Id>& nodes, Reading& reading) {
  reading.sequence.push_back(start_);
  reading.own.push_back(0);
  add_anchors(problem_.moments, start_);
  Id next_moment = 0;
  for (const Id n : nodes) {
    if (next_moment == problem_.moments) break;  // repeats after the last moment serve nobody
    const bool first = n == next_moment;
    if (!first && ((n < problem_.moments && n > next_moment) || !problem_.may_repeat[n])) return false;
    const Occurrence o = first ? n : new_occurrence(n);
    if (!(first ? read_first(o, reading) : read_repeat(o, next_moment, reading))) return false;
    if (first) ++next_moment;
    occurrences_of_[n].push_back(o);
    cost_ += problem_.cost[n];
    reading.sequence.push_back(o);
  }
  return next_moment == problem_.moments;
}

bool Timetable::read_first(Occurrence o, Reading& reading) {
  const Id moment = o;
  node_[o] = moment_[o] = moment;
  first_stay_[o] = stay_count();
  for (const Id v : problem_.inputs[moment]) {
    if (!use(v, o)) return false;
  }
  for (const Id v : problem_.timeline.hold_starts(moment)) {
    if (problem_.extra_need[v] == moment && !use(v, o)) return false;
  }
  for (const Id v : problem_.outputs[moment]) add_stay(v, o, problem_.zone_first[v] != moment);
  add_anchors(moment, o);
  reading.own.push_back(problem_.at[moment]);
  return true;
}

bool Timetable::read_repeat(Occurrence o, Id next_moment, Reading& reading) {
  const Id node = node_[o];
  repeat_index_[o] = static_cast<Id>(repeats_.size());
  repeats_.push_back(o);
  moment_[o] = next_moment;
  for (const Id v : problem_.inputs[node]) {
    if (!use(v, o)) return false;
  }
  Stay s = first_stay_[o];
  for (const Id v : problem_.outputs[node]) {
    if (!held_at(v, o)) {
      stay_end_[s] = o;
      stays_of_[v].push_back(s);
    }
    ++s;
  }
  reading.own.push_back(own_bytes(o));
  return true;
}

void Timetable::add_stay(Id value, Occurrence birth, bool real) {
  stay_value_.push_back(value);
  stay_birth_.push_back(birth);
  stay_end_.push_back(real ? birth : -1);
  if (real) stays_of_[value].push_back(stay_count() - 1);
}

void Timetable::add_anchors(Id key, Occurrence birth) {
  for (const Id v : problem_.anchored[key]) {
    add_stay(v, birth, true);
    anchors_.push_back(stay_count() - 1);
  }
}

bool Timetable::use(Id value, Occurrence at) {
  if (held_at(value, at)) return true;
  if (stays_of_[value].empty()) return false;
  const Stay s = stays_of_[value].back();
  if (crosses_take_over(value, stay_birth_[s], at)) return false;
  stay_end_[s] = at;
  return true;
}

void Timetable::lay_out(const Reading& reading) {
  const std::vector<Occurrence>& sequence = reading.sequence;
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
    b.live[b.count++] = reading.own[i] + covered;
  }
  for (Id b = 0; b < static_cast<Id>(blocks_.size()); ++b) summarise(b);
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
