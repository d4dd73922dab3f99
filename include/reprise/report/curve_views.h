// Shows the curve of overhead against budget to people: a table, a picture, a word of advice.
#pragma once

#include <string>
#include <string_view>

#include "reprise/export.h"
#include "reprise/plan/curve.h"

namespace reprise {

// Returns a table with one line for each point: budget, its share of the keep-everything peak, overhead, lower bound,
// replays, a bar; the knee is marked. Ends with the meaning of the columns.
[[nodiscard]] REPRISE_EXPORT std::string to_text(const Curve&);

// Returns one or two sentences: where the knee is, and from where on the overhead is more than most would pay.
[[nodiscard]] REPRISE_EXPORT std::string advice(const Curve&);

// Returns a self-contained SVG picture: overhead and lower bound as lines with the band between them, the knee and the
// floor marked. It is readable on light and dark backgrounds and from 400 pixels of width. An overhead that is out of
// all proportion leaves the picture at the top; hovering over a point shows its numbers.
[[nodiscard]] REPRISE_EXPORT std::string to_svg(const Curve&, std::string_view title);

}  // namespace reprise
