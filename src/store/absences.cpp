#include "store/absences.h"

#include <fmt/format.h>

#include <utility>

namespace reprise::internal {

void Absences::add(const std::string& key, Why why, double cost) noexcept try {
  by_key_.insert_or_assign(key, Absence{why, cost, next_});
  order_.emplace_back(next_++, key);
  while (by_key_.size() > most || order_.size() > 2 * most) {
    const auto& [number, oldest] = order_.front();
    const auto found = by_key_.find(oldest);
    if (found != by_key_.end() && found->second.number == number) by_key_.erase(found);
    order_.pop_front();
  }
} catch (...) {  // a worse message, and no harm
}

void Absences::remove(const std::string& key) {
  by_key_.erase(key);
}

void Absences::clear() {
  by_key_.clear();
  order_.clear();
}

std::string Absences::text(const std::string& key) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return {};
  const Absence& absence = found->second;
  switch (absence.why) {
    case Why::rule:
      return fmt::format(
          ": it was offered and not remembered, because the store's rule `remember` returned false (cost {:g})",
          absence.cost);
    case Why::switched_off: return ": it was offered and not remembered, because the store was switched off";
    case Why::no_room:
      return ": it was offered and not remembered, because there was no room and Evict::nothing evicts nothing";
    case Why::evicted: return ": it was stored and then evicted, because others needed its room";
  }
  return {};
}

}  // namespace reprise::internal
