// A plan, ready to be executed on a live pass: its actions by moment, in recipes and values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reprise/store/packing.h"
#include "reprise/trace/plan.h"
#include "torch/recipes/pass_profile.h"

namespace reprise::internal {

struct ExecutablePlan {
  struct Step {
    enum class Kind : std::uint8_t {
      replay,
      drop,
      end,  // a drop after which nothing needs it any more
      pack,
      unpack,
      unpack_last,  // and nothing needs the packed copy any more
      put,          // into the tier below
      get,
    };
    Kind kind = Kind::drop;
    Id target = 0;  // a value; for replay an index into `replays`, for pack into `packings`
  };
  std::vector<Step> steps;  // all of them, in order
  // By moment: where its steps begin, those `after` it and then those `before` the next.
  std::vector<std::uint32_t> after, before;
  std::vector<std::uint64_t> events;  // by moment: the hash of an event's name, 0 for an operator
  // By moment: the fingerprint of its operator's recipe (recipes.h), 0 for an event. Empty: the recipes are there, and
  // followed. Otherwise they are written while the plan is executed, which ends where one is not the expected.
  std::vector<std::uint64_t> recipes;
  struct Replay {
    std::vector<Id> operators;  // recipes, in order
    std::vector<Id> outputs;    // what they leave
  };
  std::vector<Replay> replays;
  std::vector<std::uint8_t> owned;  // by value: it is kept when it is made
  std::vector<Id> last_drop;        // by value: after this moment the plan does not need it; -1: it is not in the plan
  struct Packing {
    Id value = 0;
    PackedForm form;
  };
  std::vector<Packing> packings;
  std::vector<OtherBytes> most_other;  // by moment: with more, the budget does not hold

  Bytes budget = 0, peak = 0;
  double added_cost = 0, plain_cost = 0;  // microseconds
  double gap = 0;

  // Of what it puts below: what the plan counts for going there and coming back, in microseconds.
  struct TierUse {
    std::int64_t puts = 0;
    Bytes bytes = 0;
    double both_ways = 0;
  } below;

  [[nodiscard]] Id moments() const { return static_cast<Id>(events.size()); }
  // Returns about how much memory it takes.
  [[nodiscard]] Bytes bytes() const;
  // Returns what the plan leaves free of its budget at the tightest moment, with these other bytes; below zero if they
  // have outgrown it.
  [[nodiscard]] Bytes spare(const std::vector<OtherBytes>&) const;
  // Return the steps right after the moment, and right before it.
  [[nodiscard]] std::span<const Step> steps_after(Id moment) const;
  [[nodiscard]] std::span<const Step> steps_before(Id moment) const;
};

}  // namespace reprise::internal
