// EvictionHints: what plans did with values like this one, for steps that no plan is for.
//
// Steps that differ by some blocks left out, by a length or by a batch size share most of their structure. A value is
// *like* another if operators of the same names made it from what operators of the same names had made, and so on, a
// few operators back, whatever their sizes and wherever in the step they are. Of the values of one structural_hash,
// plans keep some part until backward, and evict the rest. Where the online policy has to evict, it begins with values
// that plans evicted, and ends with those that they kept.
//
// Under the arbiter's lock.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "torch/plans/recorded_pass.h"

namespace reprise::internal {

// When the online policy is to evict a value.
enum class EvictionPriority : std::uint8_t { first, early, unknown, late, last };

class EvictionHints {
 public:
  // Of the values of one structural_hash, so many bytes were saved for backward, and plans kept so many of them. The
  // more a plan had to evict, the more its bytes count.
  struct Seen {
    std::uint32_t structural_hash = 0;
    double kept = 0, saved = 0;
  };

  // Learns from the plan of a pass. One that evicts nothing has nothing to say. What was learnt from others before
  // it counts half from now on.
  void learn(const RecordedPass&);

  // For a value that an operator of this structural_hash makes.
  [[nodiscard]] EvictionPriority priority_of(std::uint32_t structural_hash) const;

  // All that is known, and what others have known. Never more than a fixed number: what was seen long ago goes first.
  [[nodiscard]] std::vector<Seen> all() const;
  void add(const std::vector<Seen>&);

 private:
  struct Part {
    double kept = 0, saved = 0;
  };

  void let_the_oldest_go();

  std::unordered_map<std::uint32_t, Part> by_structural_hash_;
};

}  // namespace reprise::internal
