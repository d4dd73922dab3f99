// The values that matter: what happens to them and why, one by one and summed up by operator and by module.
#include <fmt/format.h>

#include <algorithm>

#include "report/page_parts.h"
#include "report/svg.h"
#include "report/words.h"
#include "reprise/trace/amount.h"

namespace reprise::internal {
namespace {

constexpr std::size_t values_shown = 20, names_shown = 12;

// Bytes times time as a share of that of all values, with a bar that is full for the largest of the table.
std::string share_cell(double part, double largest, double whole) {
  return fmt::format(
      R"(<td class="share" data-label="bytes × time">{}<svg class="bar" aria-hidden="true"><rect width="{:.1f}%" height="100%"/></svg></td>)",
      html(percent(whole > 0 ? part / whole : 0)), largest > 0 ? 100 * part / largest : 0);
}

const char* class_of(Fate fate) {
  switch (fate) {
    case Fate::kept: return "kept";
    case Fate::packed: return "packed";
    case Fate::outside: return "outside";
    case Fate::evicted: return "replayed";
  }
  return "";
}

std::string value_row(const PageData& data, const ValueGroup& group) {
  const std::string module =
      group.module.empty() ? "" : fmt::format("<small class=\"module\">{}</small>", html(group.module));
  const std::string bytes =
      group.values > 1 ? fmt::format("{} × {}", group.values, format_bytes(group.bytes)) : format_bytes(group.bytes);
  return fmt::format(
      "<tr><th scope=\"row\">{}{}</th><td data-label=\"bytes\">{}</td>{}<td data-label=\"what happens\"><i "
      "class=\"swatch {}\"></i>{}</td><td class=\"why\" data-label=\"why\">{}</td></tr>\n",
      html(group.name.empty() ? "(no name)" : group.name), module, bytes,
      share_cell(group.byte_cost, data.fates.values.front().byte_cost, data.fates.byte_cost), class_of(group.fate),
      html(what_happens(group)), xml_text(sentence(data.trace, group), 200));
}

std::string values_table(const PageData& data) {
  const auto& groups = data.fates.values;
  const std::size_t shown = std::min(values_shown, groups.size());
  std::string rows;
  for (std::size_t i = 0; i < shown; ++i) rows += value_row(data, groups[i]);
  std::string rest;
  if (shown < groups.size()) {
    double part = 0;
    std::size_t values = 0;
    for (std::size_t i = shown; i < groups.size(); ++i) {
      part += groups[i].byte_cost;
      values += groups[i].values;
    }
    const double share = data.fates.byte_cost > 0 ? part / data.fates.byte_cost : 0;
    rest = fmt::format("<p class=\"soft\">And {} more, with {} of bytes × time together.</p>\n", count(values, "value"),
                       html(small_percent(share)));
  }
  return "<table class=\"values\">\n<thead><tr><th scope=\"col\">made by</th><th scope=\"col\">bytes</th><th "
         "scope=\"col\">bytes × time</th><th scope=\"col\">what happens</th><th "
         "scope=\"col\">why</th></tr></thead>\n<tbody>\n" +
         rows + "</tbody>\n</table>\n" + rest;
}

std::string names_table(const PageData& data, std::string_view what, const std::vector<NameGroup>& groups) {
  if (groups.empty()) return "";
  const double step = data.trace.total_cost();
  std::string rows;
  for (std::size_t i = 0; i < std::min(names_shown, groups.size()); ++i) {
    const NameGroup& group = groups[i];
    const double whole = data.fates.byte_cost;
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td data-label=\"values\">{}</td><td data-label=\"bytes\">{}</td>{}<td "
        "data-label=\"after\">{}</td><td data-label=\"replays\">{}</td><td data-label=\"their cost\">{}</td></tr>\n",
        html(group.name.empty() ? "(no name)" : group.name), group.values, format_bytes(group.bytes),
        share_cell(group.byte_cost, groups.front().byte_cost, whole),
        html(percent(whole > 0 ? group.byte_cost_after / whole : 0)), group.replays,
        html(small_percent(step > 0 ? group.replay_cost / step : 0)));
  }
  return fmt::format(
      "<h3>By {0}</h3>\n<table class=\"values\">\n<thead><tr><th scope=\"col\">{0}</th><th "
      "scope=\"col\">values</th><th "
      "scope=\"col\">bytes</th><th scope=\"col\">bytes × time</th><th scope=\"col\">after</th><th "
      "scope=\"col\">replays</th><th scope=\"col\">their cost</th></tr></thead>\n<tbody>\n{1}</tbody>\n</table>\n{2}",
      what, rows,
      groups.size() > names_shown ? fmt::format("<p class=\"soft\">And {} more.</p>\n", groups.size() - names_shown)
                                  : "");
}

}  // namespace

std::string values_section(const PageData& data) {
  std::string text = "<section aria-labelledby=\"values\">\n<h2 id=\"values\">The values that matter</h2>\n";
  if (data.fates.values.empty()) return text + "<p>There are none: nothing here has bytes.</p>\n</section>\n";
  text +=
      "<p>What takes most room for longest if everything is kept, and what becomes of it. Values that are alike are "
      "one row.</p>\n";
  text += values_table(data);
  return text + names_table(data, "operator", data.fates.by_operator) +
         names_table(data, "module", data.fates.by_module) + "</section>\n";
}

}  // namespace reprise::internal
