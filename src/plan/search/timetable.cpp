#include "plan/search/timetable.h"

#include <algorithm>
#include <limits>

namespace reprise::internal {
namespace {

// What one scan of a block finds. The loop is the hottest of all planning: on machines that have them it uses wide
// registers, chosen when the program starts.
struct Scan {
  Bytes most = std::numeric_limits<Bytes>::min() / 2;  // of nothing; addends go on top
  Bytes over = 0;
  Bytes count = 0;
};

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(REPRISE_SANITIZED)
__attribute__((target_clones("avx2", "default")))
#endif
Scan scan(const Bytes* live, Id n, Bytes limit) {
  Scan result;
  for (Id i = 0; i < n; ++i) {
    const Bytes excess = live[i] - limit;
    result.most = live[i] > result.most ? live[i] : result.most;
    result.over += excess > 0 ? excess : 0;
    result.count += excess > 0 ? 1 : 0;
  }
  return result;
}

}  // namespace

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
    if (next_moment == problem_.moments) break;  // repeats after the last moment are useless
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

// ---- changes --------------------------------------------------------------------------------------------------------

Id Timetable::missing_input(Id node, Occurrence at) const {
  for (const Id v : problem_.inputs[node]) {
    if (problem_.held_while(v, moment_[at], false)) continue;
    const Stay s = latest_before(v, order(at));
    if (s < 0 || crosses_take_over(v, stay_birth_[s], at)) return v;
  }
  return nowhere;
}

bool Timetable::can_insert(Id node, Occurrence at) const {
  return missing_input(node, at) == nowhere;
}

bool Timetable::can_erase(Occurrence repeat) const {
  Stay s = first_stay_[repeat];
  for (const Id v : problem_.outputs[node_[repeat]]) {
    if (is_stay(s) && stay_end_[s] != repeat) {
      const Stay earlier = stay_before(s);
      if (earlier < 0 || crosses_take_over(v, stay_birth_[earlier], repeat)) return false;
    }
    ++s;
  }
  return true;
}

Occurrence Timetable::insert(Id node, Occurrence at) {
  const Occurrence o = insert_unlogged(node, at);
  batch_of_[o] = batch_;
  log_.push_back({true, node, o});
  return o;
}

void Timetable::erase(Occurrence repeat) {
  const Change change{false, node_[repeat], next(repeat)};
  erase_unlogged(repeat);
  log_.push_back(change);
}

void Timetable::undo_changes() {
  while (!log_.empty()) {
    const Change change = log_.back();
    log_.pop_back();
    if (change.inserted) {
      erase_unlogged(change.where);
    } else {
      insert_unlogged(change.node, change.where);
    }
  }
}

Occurrence Timetable::new_occurrence(Id node) {
  if (!spare_[node].empty()) {
    const Occurrence o = spare_[node].back();
    spare_[node].pop_back();
    alive_[o] = 1;
    return o;
  }
  const auto o = static_cast<Occurrence>(node_.size());
  node_.push_back(node);
  moment_.push_back(0);
  place_.push_back({});
  repeat_index_.push_back(-1);
  alive_.push_back(1);
  batch_of_.push_back(0);
  first_stay_.push_back(stay_count());
  for (const Id v : problem_.outputs[node]) {
    stay_value_.push_back(v);
    stay_birth_.push_back(o);
    stay_end_.push_back(-1);
  }
  return o;
}

Bytes Timetable::own_bytes(Occurrence o) const {
  const Id node = node_[o];
  if (!is_repeat(o)) return problem_.at[node];
  return problem_.before[moment_[o]] + problem_.workspace[node] + problem_.output_bytes[node];
}

Occurrence Timetable::insert_unlogged(Id node, Occurrence at) {
  if (blocks_[place_[at].block].count == capacity) split(place_[at].block);
  const Occurrence o = new_occurrence(node);
  moment_[o] = moment_[at];
  repeat_index_[o] = static_cast<Id>(repeats_.size());
  repeats_.push_back(o);

  Bytes live = live_at(at) - own_bytes(at) + own_bytes(o);
  live -= hand_over_uses(o, at);
  live += stretch_inputs(o, at);
  put_into_block(o, at, live);
  list_in_order(o);
  cost_ += problem_.cost[node];
  ++size_;
  return o;
}

Bytes Timetable::hand_over_uses(Occurrence repeat, Occurrence at) {
  const Id here = order(at);
  Bytes freed = 0;
  Stay s = first_stay_[repeat] - 1;
  for (const Id v : problem_.outputs[node_[repeat]]) {
    ++s;
    if (held_at(v, repeat)) continue;
    stay_end_[s] = repeat;
    const Stay earlier = latest_before(v, here);
    if (earlier < 0 || order(stay_end_[earlier]) < here) continue;
    freed += problem_.bytes[v];
    stay_end_[s] = stay_end_[earlier];
    const Occurrence last = last_use_between(v, order(stay_birth_[earlier]), here);
    stay_end_[earlier] = last < 0 ? stay_birth_[earlier] : last;
    add_between(stay_end_[earlier], at, -problem_.bytes[v]);
  }
  return freed;
}

Bytes Timetable::stretch_inputs(Occurrence repeat, Occurrence at) {
  const Id here = order(at);
  Bytes added = 0;
  for (const Id v : problem_.inputs[node_[repeat]]) {
    if (held_at(v, repeat)) continue;
    const Stay serving_stay = latest_before(v, here);
    if (order(stay_end_[serving_stay]) >= here) continue;
    added += problem_.bytes[v];
    add_between(stay_end_[serving_stay], at, problem_.bytes[v]);
    stay_end_[serving_stay] = repeat;
  }
  return added;
}

void Timetable::put_into_block(Occurrence o, Occurrence at, Bytes live) {
  const Place place = place_[at];
  Block& b = blocks_[place.block];
  for (Id i = b.count; i > place.index; --i) {
    b.occurrences[i] = b.occurrences[i - 1];
    b.live[i] = b.live[i - 1];
    place_[b.occurrences[i]].index = i;
  }
  place_[o] = place;
  b.occurrences[place.index] = o;
  b.live[place.index] = live - summaries_[place.block].addend;
  ++b.count;
  summarise(place.block);
}

// Among its like; most land near the end, so the search starts there.
void Timetable::list_in_order(Occurrence repeat) {
  const auto insert_in_order = [&](std::vector<std::int32_t>& list, std::int32_t item, auto occurrence_of) {
    auto spot = list.end();
    while (spot != list.begin() && order(occurrence_of(*(spot - 1))) > order(repeat)) --spot;
    list.insert(spot, item);
  };
  const Id node = node_[repeat];
  insert_in_order(occurrences_of_[node], repeat, [](Occurrence other) { return other; });
  Stay s = first_stay_[repeat];
  for (const Id v : problem_.outputs[node]) {
    if (is_stay(s)) insert_in_order(stays_of_[v], s, [&](Stay other) { return stay_birth_[other]; });
    ++s;
  }
}

void Timetable::erase_unlogged(Occurrence o) {
  const Id node = node_[o];
  const Id here = order(o);
  Stay s = first_stay_[o];
  for (const Id v : problem_.outputs[node]) {
    if (is_stay(s)) {
      if (stay_end_[s] != o) {  // an earlier stay serves its uses again
        const Stay earlier = stay_before(s);
        add_between(stay_end_[earlier], o, problem_.bytes[v]);
        stay_end_[earlier] = stay_end_[s];
      }
      stay_end_[s] = -1;
      auto& stays = stays_of_[v];
      stays.erase(std::find(stays.rbegin(), stays.rend(), s).base() - 1);
    }
    ++s;
  }
  for (const Id v : problem_.inputs[node]) {
    if (held_at(v, o)) continue;
    const Stay serving_stay = latest_before(v, here);
    if (stay_end_[serving_stay] != o) continue;
    const Occurrence last = last_use_between(v, order(stay_birth_[serving_stay]), here);
    stay_end_[serving_stay] = last < 0 ? stay_birth_[serving_stay] : last;
    add_between(stay_end_[serving_stay], o, -problem_.bytes[v]);
  }

  Block& b = blocks_[place_[o].block];
  --b.count;
  for (Id i = place_[o].index; i < b.count; ++i) {
    b.occurrences[i] = b.occurrences[i + 1];
    b.live[i] = b.live[i + 1];
    place_[b.occurrences[i]].index = i;
  }
  summarise(place_[o].block);

  auto& occurrences = occurrences_of_[node];
  occurrences.erase(std::find(occurrences.rbegin(), occurrences.rend(), o).base() - 1);
  const Occurrence moved = repeats_.back();
  repeats_[repeat_index_[o]] = moved;
  repeat_index_[moved] = repeat_index_[o];
  repeats_.pop_back();
  repeat_index_[o] = -1;
  alive_[o] = 0;
  spare_[node].push_back(o);
  cost_ -= problem_.cost[node];
  --size_;
}

// ---- bytes in blocks ------------------------------------------------------------------------------------------------

void Timetable::summarise(Id block) {
  Summary& summary = summaries_[block];
  const Scan found = scan(blocks_[block].live.data(), blocks_[block].count, problem_.budget - summary.addend);
  over_bytes_ += static_cast<double>(found.over) - summary.over_bytes;
  over_count_ += static_cast<Id>(found.count) - summary.over_count;
  summary.most = found.most;
  summary.over_bytes = static_cast<double>(found.over);
  summary.over_count = static_cast<Id>(found.count);
}

void Timetable::add_in_block(Id block, Id from, Id to, Bytes amount) {
  if (from >= to) return;
  Bytes* const live = blocks_[block].live.data();
  for (Id i = from; i < to; ++i) live[i] += amount;
  summarise(block);
}

void Timetable::add_between(Occurrence after, Occurrence before, Bytes amount) {
  const Place first = place_[after], last = place_[before];
  if (first.block == last.block) return add_in_block(first.block, first.index + 1, last.index, amount);
  add_in_block(first.block, first.index + 1, blocks_[first.block].count, amount);
  for (Id rank = rank_[first.block] + 1; rank < rank_[last.block]; ++rank) {
    Summary& summary = summaries_[order_of_blocks_[rank]];
    const bool may_be_over = summary.most + summary.addend + std::max<Bytes>(amount, 0) > problem_.budget;
    summary.addend += amount;
    if (may_be_over) summarise(order_of_blocks_[rank]);
  }
  add_in_block(last.block, 0, last.index, amount);
}

void Timetable::split(Id block) {
  const auto created = static_cast<Id>(blocks_.size());
  blocks_.emplace_back();
  summaries_.emplace_back();
  Block& from = blocks_[block];
  Block& to = blocks_[created];
  const Id half = from.count / 2;
  summaries_[created].addend = summaries_[block].addend;
  to.count = from.count - half;
  for (Id i = 0; i < to.count; ++i) {
    const Occurrence o = from.occurrences[half + i];
    to.occurrences[i] = o;
    to.live[i] = from.live[half + i];
    place_[o] = {created, i};
  }
  from.count = half;
  rank_.push_back(0);
  order_of_blocks_.insert(order_of_blocks_.begin() + rank_[block] + 1, created);
  for (Id rank = rank_[block] + 1; rank < block_count(); ++rank) rank_[order_of_blocks_[rank]] = rank;
  summarise(block);
  summarise(created);
}

// ---- for tests ------------------------------------------------------------------------------------------------------

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
