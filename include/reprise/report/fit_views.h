// Shows which sizes fit a budget to people: a table, a picture, a word of advice.
#pragma once

#include <string>
#include <string_view>

#include "reprise/export.h"
#include "reprise/plan/fit.h"

namespace reprise {

// Returns a table with one line for each size: the peak if everything is kept, overhead, cost per sample, replays, a
// bar; for a size that does not fit, the budget that it would take. Ends with the meaning of the columns.
[[nodiscard]] REPRISE_EXPORT std::string to_text(const Fit&);

// Returns one or two sentences: the largest size that fits, what it costs, and the size that costs least per sample.
[[nodiscard]] REPRISE_EXPORT std::string advice(const Fit&);

// Returns a self-contained SVG picture: cost per sample against size, within the budget and without one. The largest
// size that fits and the cheapest one are marked. It is readable on light and dark backgrounds and from 400 pixels of
// width; hovering over a point shows its numbers.
[[nodiscard]] REPRISE_EXPORT std::string to_svg(const Fit&, std::string_view title);

}  // namespace reprise
