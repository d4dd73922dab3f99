// Records where values are while the interpreter runs. Does nothing if residences are not asked for.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "reprise/simulate/simulate.h"

namespace reprise::internal {

class Residences {
 public:
  Residences(bool wanted, std::size_t values) : begun_(wanted ? values : 0), wanted_(wanted) {}

  void arrive(Id value, Residence::Origin origin, std::size_t action) {
    if (wanted_) begun_[value] = {value, origin, 0, action, action};
  }
  // `end`: the first action that takes place without the value; likewise below.
  void leave(Id value, std::size_t end) {
    if (!wanted_) return;
    begun_[value].end = end;
    record(begun_[value]);
  }
  void put(Id value, Id tier, std::size_t action) {
    if (wanted_) copies_[{value, tier}] = action;
  }
  void leave_tier(Id value, Id tier, std::size_t end) {
    if (!wanted_) return;
    const auto copy = copies_.extract({value, tier});
    record({value, Residence::Origin::put, tier, copy.mapped(), end});
  }
  // Returns the record when the plan has ended. Copies that no action got stay until then.
  [[nodiscard]] std::vector<Residence> take(std::size_t end) {
    for (const auto& [copy, action] : copies_) record({copy.first, Residence::Origin::put, copy.second, action, end});
    return std::move(ended_);
  }

 private:
  void record(const Residence& residence) {
    if (residence.begin < residence.end) ended_.push_back(residence);
  }

  std::vector<Residence> begun_;                     // by value: the one that has begun, if it is resident
  std::map<std::pair<Id, Id>, std::size_t> copies_;  // by value and tier: the action that put them there
  std::vector<Residence> ended_;
  const bool wanted_;
};

}  // namespace reprise::internal
