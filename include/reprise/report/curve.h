// The curve of overhead against budget, for people: a table, a picture, a word of advice.
#pragma once

#include <string>
#include <string_view>

#include "reprise/plan/curve.h"

namespace reprise {

// One line for each point: budget, its share of everything, overhead, lower bound, replays, a bar; the knee is marked.
// Ends with what the columns mean.
[[nodiscard]] std::string to_text(const Curve&);

// One or two sentences: where the knee is, and from where on the overhead is more than most would pay.
[[nodiscard]] std::string advice(const Curve&);

// A picture that needs nothing else: overhead and lower bound as lines with the band between them, the knee and the
// floor marked. Readable on light and dark backgrounds and from 400 pixels of width. An overhead that is out of all
// proportion leaves the picture at the top; hovering over a point tells its numbers.
[[nodiscard]] std::string to_svg(const Curve&, std::string_view title);

}  // namespace reprise
