// Numbers and names as people read them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "reprise/trace/trace.h"

namespace reprise {
struct Summary;
}

namespace reprise::internal {

// Returns a share as per cent: "0 %", "<0.1 %", "3.1 %", "34 %", "1500 %".
[[nodiscard]] std::string percent(double share);

// Returns a share that is small by nature, with two digits: "0.034 %", "1.2 %".
[[nodiscard]] std::string small_percent(double share);

// Returns what a plan costs, in words: "3.1 %: it costs 1.0312 times as much as running everything once", "none".
[[nodiscard]] std::string overhead(double cost_ratio);

// Returns the share of everything: "0.43".
[[nodiscard]] std::string share_of(Bytes part, Bytes everything);

// Returns the text with a capital first letter, if that is an ASCII letter.
[[nodiscard]] std::string capitalized(std::string text);

// Returns "1 replay", "12 replays".
[[nodiscard]] std::string count(std::size_t number, std::string_view noun);

// Returns "less than 0.1 s", "3.5 s", "12 s", "2 min 5 s".
[[nodiscard]] std::string duration(double seconds);

// Returns what a session added to its last step: "replaying, packing and waiting for the disk"; "nothing".
[[nodiscard]] std::string what_was_added(const Summary&);

// Returns a bar of at most `width` characters, in steps of an eighth of one. Never empty for a share above zero.
inline constexpr int bar_width = 24;
[[nodiscard]] std::string bar(double share, int width = bar_width);

// Returns one line of a report: "  peak        1.50 GiB".
[[nodiscard]] std::string line(std::string_view label, std::string_view text);

// Returns the trace's name made harmless, or "the trace" without one.
[[nodiscard]] std::string name_of(const Trace&);

// Returns "value 12 of 'conv3' (1.50 MiB)", "value 3 from outside (4.00 KiB)".
[[nodiscard]] std::string describe_value(const Trace&, Id value);

// Returns "moment 12 'conv3'"; "moment 12" for one without a name.
[[nodiscard]] std::string describe_moment(const Trace&, Id moment);

// Returns the operator that makes a value, or "(outside)", cut to the width of a column.
[[nodiscard]] std::string maker_of(const Trace&, Id value, std::size_t width);

}  // namespace reprise::internal
