// What would let the budget go lower: what sets the floor, what cannot be recomputed, and what to do about it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/number_pattern.h"
#include "report/page_parts.h"
#include "report/svg.h"
#include "report/words.h"
#include "reprise/trace/amount.h"

namespace reprise::internal {
namespace {

constexpr std::size_t most_listed = 5;

std::string paragraph(std::string_view text) {
  return fmt::format("<p>{}</p>\n", xml_text(text, 800));
}

// Returns the largest ones, those that are alike as one: "24 values from outside, 1.12 GiB".
std::string list_of(const Trace& trace, const std::vector<Id>& values) {
  struct Alike {
    NumberPattern name;
    std::size_t values = 0;
    Bytes bytes = 0;
  };
  std::map<std::pair<std::string, Bytes>, std::size_t> places;
  std::vector<Alike> list;
  for (const Id v : values) {
    const Value& value = trace.values[v];
    const std::string name = value.maker ? fmt::format("of '{}'", trace.operators[*value.maker].name) : "from outside";
    const auto [place, added] = places.try_emplace({without_numbers(name), value.bytes}, list.size());
    if (added) list.emplace_back();
    Alike& alike = list[place->second];
    alike.name.add(name);
    ++alike.values;
    alike.bytes += value.bytes;
  }
  std::stable_sort(list.begin(), list.end(), [](const Alike& a, const Alike& b) { return a.bytes > b.bytes; });
  std::string items;
  Bytes rest = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i >= most_listed) rest += list[i].bytes;
    if (i >= most_listed) continue;
    items += fmt::format("<li>{} {}, {}</li>\n", count(list[i].values, "value"), html(list[i].name.text()),
                         format_bytes(list[i].bytes));
  }
  if (rest > 0) items += fmt::format("<li>and others with {}</li>\n", format_bytes(rest));
  return items.empty() ? "" : "<ul>\n" + items + "</ul>\n";
}

std::string share(Bytes part, Bytes whole) {
  return percent(whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0);
}

// Which part of the floor is largest decides what helps.
std::string floor_advice(Bytes other, Bytes workspace, Bytes values, Bytes floor) {
  if (other >= workspace && other >= values) {
    return fmt::format(
        "Most of it, {}, is other bytes: parameters, gradients, optimizer state and what the program keeps outside the "
        "step. No plan can evict those. An optimizer with less state, gradients that are set to none before forward, "
        "or parameters in a smaller type would lower it.",
        share(other, floor));
  }
  if (workspace >= values) {
    return fmt::format(
        "Most of it, {}, is workspace that the operator takes while it runs. Another algorithm for it, or a smaller "
        "batch, would lower it.",
        share(workspace, floor));
  }
  return fmt::format(
      "Most of it, {}, is what this moment reads and makes. It has to be there at once: a smaller batch, or doing this "
      "operator in parts (over the batch, the heads or the vocabulary), would lower it.",
      share(values, floor));
}

std::string floor_part(const PageData& data) {
  const Trace& trace = data.trace;
  const Blocker& floor = data.inspection.floor;
  if (trace.moments.empty()) return paragraph("Nothing runs, so nothing is needed.");
  const FloorParts& parts = data.inspection.floor_parts;
  const Bytes other = parts.other, workspace = parts.workspace;
  const Bytes values = parts.needed + parts.made + parts.held + parts.fixed;
  std::string text = fmt::format(
      "<p>No plan whatsoever needs less than {} ({} of everything). That is set by {}, with {} of values{} and {} of "
      "other bytes at once.</p>\n",
      number("floor_bytes", floor.bytes, format_bytes(floor.bytes)), share_of(floor.bytes, data.before.peak),
      xml_text(describe_moment(trace, floor.moment), 120), format_bytes(values),
      workspace > 0 ? fmt::format(", {} of workspace", format_bytes(workspace)) : "", format_bytes(other));
  text += list_of(trace, floor.values) + paragraph(floor_advice(other, workspace, values, floor.bytes));
  if (const Curve* const curve = data.input.curve; curve && curve->smallest > floor.bytes) {
    text +=
        paragraph(fmt::format("The smallest budget for which a plan was found is {}. Whether less than that is "
                              "possible is not known; more time for "
                              "planning may find one.",
                              format_bytes(curve->smallest)));
  }
  return text;
}

std::string fixed_part(const PageData& data) {
  const Trace& trace = data.trace;
  std::vector<Id> made;
  Bytes made_bytes = 0;
  for (const Id v : data.inspection.fixed) {
    if (!trace.values[v].maker || trace.values[v].bytes == 0) continue;
    made.push_back(v);
    made_bytes += trace.values[v].bytes;
  }
  if (made.empty()) {
    return paragraph("Every value that an operator makes can be replayed or put into a tier: nothing is fixed.");
  }
  return paragraph(fmt::format(
             "{} can neither be replayed nor put into a tier, {} together, and stay for as long as they are needed. An "
             "operator that gives the same result again, or a tier that takes its values, would free them:",
             count(made.size(), "value"), format_bytes(made_bytes))) +
         list_of(trace, made);
}

// What a session found out about operators that it cannot replay.
std::string kept_part(const Summary& summary) {
  std::string items;
  for (std::size_t i = 0; i < std::min(most_listed, summary.kept.size()); ++i) {
    const KeptOperator& op = summary.kept[i];
    items += fmt::format("<li>{} of '{}': {}</li>\n", format_bytes(op.bytes), html(op.op), xml_text(op.why, 200));
  }
  return items.empty()
             ? ""
             : paragraph("What the session keeps because it cannot be recomputed:") + "<ul>\n" + items + "</ul>\n";
}

}  // namespace

std::string lower_section(const PageData& data) {
  return "<section aria-labelledby=\"lower\">\n<h2 id=\"lower\">What would let the budget go lower</h2>\n" +
         floor_part(data) + fixed_part(data) + (data.input.summary ? kept_part(*data.input.summary) : "") +
         "</section>\n";
}

std::string definitions() {
  return R"(<footer>
<h2>What the words mean</h2>
<dl class="words">
<dt>parameters and optimizer</dt><dd>What is there throughout: the smallest other bytes of all moments, and values from outside that the program holds from the first moment to the last.</dd>
<dt>gradients</dt><dd>Other bytes that come during the step and stay until its end: at each moment, the smallest other bytes from there on, without the parameters and optimizer.</dd>
<dt>kept</dt><dd>Values since they were first made, or came from outside.</dd>
<dt>packed</dt><dd>Copies of values in tiers that count in the budget.</dd>
<dt>replayed</dt><dd>Values that were made again, or came back from a tier.</dd>
<dt>tier</dt><dd>A place for values beside plain memory: packed memory, a disk, memory of the host below an accelerator.</dd>
<dt>other</dt><dd>The rest: other bytes that go again before the step ends, such as gradients of activations, and the workspace of operators.</dd>
<dt>other bytes</dt><dd>What is live and not ours to evict.</dd>
<dt>bytes × time</dt><dd>A value's bytes times how long it is resident if everything is kept, as a share of that of all values; “after”: with the plan, on the same scale.</dd>
<dt>overhead</dt><dd>Time added, as a share of the step without Reprise. Costs are those of the trace.</dd>
</dl>
</footer>
)";
}

}  // namespace reprise::internal
