// What the measurements of ./bench compare say about each rival. Pure: numbers in, statements out.
#pragma once

#include <string>
#include <vector>

#include "compare_results.h"

namespace reprise::benchmarks {

// Of the results of a step, compared with a plain one.
enum class Soundness {
  exact,           // every bit
  rounded,         // gradients summed in another order
  wrong_state,     // gradients are right, BatchNorm's statistics are not
  wrong_gradients  // and whatever else
};
[[nodiscard]] Soundness soundness(const Measured&);
[[nodiscard]] bool is_wrong(Soundness);
// Within its budget, and every bit that of a plain step.
[[nodiscard]] bool kept_its_promises(const ReprisePoint&);

// The middle, and the ends.
struct Range {
  double least = 0, median = 0, most = 0;
};
// Throws std::invalid_argument for no values.
[[nodiscard]] Range range_of(const std::vector<double>& values);

// Peaks as shares of the plain peak of the same engine.
[[nodiscard]] double share_of_plain(const RivalResult&, const ModelResult&);
[[nodiscard]] double share_of_plain(const ReprisePoint&, const ModelResult&);

// At which shares of the plain peak Reprise is measured, largest first: at each of these, except that one budget serves
// all that are at most 0.01 above it; between those that are far apart; and below the smallest.
[[nodiscard]] std::vector<double> shares_to_measure(std::vector<double> rivals, bool quick);

// One rival against Reprise.
struct Finding {
  const RivalResult* rival = nullptr;
  Soundness sound = Soundness::exact;
  double share = 0;                       // its peak
  double time = 0;                        // its median ratio
  const ReprisePoint* at_peak = nullptr;  // with the largest peak within its own; nullptr: none was kept
  // With the smallest peak down to which, from `at_peak` on, all are no slower; nullptr: not even that one.
  const ReprisePoint* at_time = nullptr;
  double gain = 0;          // by how much Reprise is faster at its peak; 0 without `at_peak`
  bool is_clear = false;    // the quartiles of the two times do not overlap
  bool needs_less = false;  // Reprise, at its time
};

// Of those that were measured, largest peak first.
[[nodiscard]] std::vector<Finding> findings_of(const ModelResult&);

// The claims, and where they fail: paragraphs of Markdown.
[[nodiscard]] std::string verdict(const Results&);

// "1.03 (1.01..1.06)"
[[nodiscard]] std::string text_of(const Range&);
// With so many digits.
[[nodiscard]] std::string fixed(double value, int digits);

}  // namespace reprise::benchmarks
