// The two changes of a timetable, insert and erase, and the live bytes in blocks that they keep up to date.
#include <algorithm>
#include <limits>

#include "plan/search/timetable.h"

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

}  // namespace reprise::internal
