// The parts of the HTML page. Each section is a function from the same data to HTML; page.cpp puts them together.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/fates.h"
#include "report/layers.h"
#include "reprise/report/inspection.h"
#include "reprise/report/page.h"

namespace reprise::internal {

// What the sections draw from, worked out once.
struct PageData {
  const PageInput& input;
  const Trace& trace;
  Plan everything;                  // the plan that keeps everything: "before"
  Simulation before;                // of it
  std::optional<Simulation> after;  // of the plan, if there is one
  Columns columns_before;
  std::optional<Columns> columns_after;
  Inspection inspection;
  Fates fates;

  [[nodiscard]] const Plan& plan() const { return input.plan ? *input.plan : everything; }
  [[nodiscard]] const Simulation& simulation() const { return after ? *after : before; }
  [[nodiscard]] double cost_ratio() const;  // of the plan; 1 for a trace that costs nothing
};

// Names from files: cut to a length that a page has room for, and escaped.
[[nodiscard]] std::string html(std::string_view text);

// Returns a number that people read and programs compare: `key` is its name in the page's JSON, `value` what is there.
[[nodiscard]] std::string number(std::string_view key, double value, std::string_view text);
[[nodiscard]] std::string number(std::string_view key, Bytes value, std::string_view text);

// Keys of what the plan does with a tier: how often it puts something there, and the most bytes there.
[[nodiscard]] std::string puts_key(Id tier);
[[nodiscard]] std::string peak_key(Id tier);

[[nodiscard]] std::string headline(const PageData&);
[[nodiscard]] std::string memory_section(const PageData&);
[[nodiscard]] std::string curve_section(const PageData&);  // empty without a curve
[[nodiscard]] std::string values_section(const PageData&);
[[nodiscard]] std::string lower_section(const PageData&);
[[nodiscard]] std::string definitions();

// For programs and for the script: one JSON object that can stand inside a script element.
[[nodiscard]] std::string page_numbers(const PageData&);

[[nodiscard]] std::string_view page_style();
[[nodiscard]] std::string_view page_script();
// Returns the content policy of the page: it loads nothing, and a browser accepts page_style(), curve_style() and
// page_script() by their hashes. Anything else that is inline (another script or style element, style="...",
// onclick="...") is refused.
[[nodiscard]] std::string_view page_policy();

// Returns a curve of at most this many points, the ends and the knee among them.
[[nodiscard]] Curve thinned(const Curve&, std::size_t most);

}  // namespace reprise::internal
