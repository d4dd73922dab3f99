// Memory over the step, before and after: stacked areas against the budget, on the same axes.
//
// The areas are stretched to whatever width there is; the words around them are not, so that they have the same size on
// a phone and on a wide screen.
#include <fmt/format.h>

#include <algorithm>

#include "report/page_parts.h"
#include "report/scale.h"
#include "report/tier_words.h"
#include "report/words.h"
#include "reprise/trace/amount.h"

namespace reprise::internal {
namespace {

constexpr double box = 1000;         // width and height of the stretched picture
constexpr double room_above = 1.14;  // for the budget's label

class MemoryPicture {
 public:
  explicit MemoryPicture(const PageData& data) : data_(data) {
    const Bytes most = std::max({data.before.peak, data.after ? data.plan().budget : 0, Bytes{1}});
    most_bytes_ = room_above * static_cast<double>(most);
    unit_ = unit_for(most);
    ticks_ = round_ticks(static_cast<double>(most) / unit_.bytes, 4);
    plain_ = data.columns_before.cost;
    most_share_ = std::max(1.0, data.after ? data.cost_ratio() : 1.0);
    times_ = round_ticks(100 * most_share_, 6);
  }

  enum class Side { before, after };
  std::string draw(Side which) {
    const bool after = which == Side::after;
    const Simulation& simulation = after ? *data_.after : data_.before;
    const Columns& columns = after ? *data_.columns_after : data_.columns_before;
    const char* const side = after ? "after" : "before";
    text_.clear();
    add(R"(<figure class="memory" data-side="{}">)", side);
    add("<figcaption><strong>{}</strong> {}</figcaption>", after ? "After." : "Before.",
        after ? "The plan is followed." : "Everything is kept until its last use.");
    add(R"(<div class="plot"><div class="frame" tabindex="0" role="group" aria-label="{}, moment by moment: left and right arrow keys">)",
        after ? "After" : "Before");
    draw_areas(columns, after, simulation.peak);
    text_ += R"(<i class="cursor" hidden></i>)";
    add("</div>");
    draw_labels();
    add("</div>\n<p class=\"readout\" aria-live=\"polite\">{}</p>\n</figure>",
        peak_sentence(columns, simulation.peak, after));
    return std::move(text_);
  }

  // What the plan puts into tiers that do not count in the budget: each has a lane below the memory, on the same axis
  // of time.
  std::string lanes() {
    std::string all;
    for (const TierUse& use : tiers_used(data_.plan(), *data_.after)) {
      if (!data_.plan().tiers[use.tier].in_budget && use.peak > 0) all += lane(use);
    }
    return all;
  }

  std::string lane(const TierUse& use) {
    const std::vector<Bytes> bytes = bytes_in(data_.plan(), *data_.after, use.tier);
    const Columns& columns = *data_.columns_after;
    const auto count = static_cast<double>(columns.actions.size());
    const double width = box * width_of(columns);
    std::string path = fmt::format("M0,{}", box);
    for (std::size_t column = 0; column < columns.actions.size(); ++column) {
      const double share = static_cast<double>(bytes[columns.actions[column]]) / static_cast<double>(use.peak);
      path += fmt::format("V{:.1f}H{:.1f}", box * (1 - share), width * static_cast<double>(column + 1) / count);
    }
    text_.clear();
    const std::string there = where(data_.plan().tiers[use.tier]);
    add("<figure data-side=\"outside\"><figcaption><strong>{}.</strong> Not in the budget: at most {}.</figcaption>",
        html(capitalized(there)), number(peak_key(use.tier), use.peak, format_bytes(use.peak)));
    add(R"(<div class="lane"><svg viewBox="0 0 {0} {0}" preserveAspectRatio="none" role="img" aria-label="Bytes {3} over the step: at most {1}"><path class="outside" d="{2}V{0}Z"/></svg></div></figure>)",
        box, format_bytes(use.peak), path, html(there));
    return std::move(text_);
  }

  // What the colours are, for those layers that are there.
  std::string legend() const {
    std::string items;
    for (std::size_t i = 0; i < layer_count; ++i) {
      if (!is_drawn(i)) continue;
      items +=
          fmt::format("<li><i class=\"swatch {}\"></i>{}</li>\n", layer_classes[i], name(static_cast<MemoryLayer>(i)));
    }
    return "<ul class=\"legend\">\n" + items + "</ul>\n";
  }

  // What is live at the peaks, in numbers.
  std::string key() const {
    const LayerBytes before = at_peak(data_.columns_before);
    std::string rows;
    for (std::size_t i = layer_count; i-- > 0;) {  // as in the picture, from the top
      if (!is_drawn(i)) continue;
      rows += fmt::format(R"(<tr><th scope="row"><i class="swatch {}"></i>{}</th><td>{}</td>{}</tr>)", layer_classes[i],
                          name(static_cast<MemoryLayer>(i)), format_bytes(before.of[i]), after_cell(i));
      rows += '\n';
    }
    const std::string total = data_.after ? fmt::format("<td>{}</td>", format_bytes(data_.after->peak)) : std::string();
    return fmt::format(
        "<table class=\"key\">\n<caption>Live bytes at the peak</caption>\n<thead><tr><th "
        "scope=\"col\">what it is</th><th scope=\"col\">before</th>{}</tr></thead>\n<tbody>\n{}</tbody>\n"
        "<tfoot><tr><th scope=\"row\">together</th><td>{}</td>{}</tr></tfoot>\n</table>\n",
        data_.after ? "<th scope=\"col\">after</th>" : "", rows, format_bytes(data_.before.peak), total);
  }

 private:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }

  // Units of the picture from its top, and per cent.
  [[nodiscard]] double y_of(double bytes) const { return box * (1 - bytes / most_bytes_); }
  [[nodiscard]] double percent_down(double bytes) const { return 100 * y_of(bytes) / box; }
  // Where the picture of these columns ends, as a share of the width.
  [[nodiscard]] double width_of(const Columns& columns) const {
    return plain_ > 0 ? columns.cost / plain_ / most_share_ : 1;
  }

  static std::size_t peak_column(const Columns& columns) {
    const auto largest =
        std::max_element(columns.layers.begin(), columns.layers.end(),
                         [](const LayerBytes& a, const LayerBytes& b) { return a.total() < b.total(); });
    return static_cast<std::size_t>(largest - columns.layers.begin());
  }
  static LayerBytes at_peak(const Columns& columns) {
    return columns.layers.empty() ? LayerBytes{} : columns.layers[peak_column(columns)];
  }

  // Returns whether the layer has any bytes, before or after.
  [[nodiscard]] bool is_drawn(std::size_t layer) const {
    const auto some = [layer](const Columns& columns) {
      return std::any_of(columns.layers.begin(), columns.layers.end(),
                         [layer](const LayerBytes& column) { return column.of[layer] > 0; });
    };
    return some(data_.columns_before) || (data_.columns_after && some(*data_.columns_after));
  }

  // Where the first event is, as a share of the step without Reprise; none: there is no event.
  [[nodiscard]] std::optional<double> backward_begins(bool after) const {
    const Plan& plan = after ? data_.plan() : data_.everything;
    const std::vector<double> costs = costs_before(data_.trace, plan);
    for (std::size_t i = 0; plain_ > 0 && i < plan.actions.size(); ++i) {
      const Action& action = plan.actions[i];
      if (action.kind == Action::Kind::run && data_.trace.is_event(action.target)) return costs[i] / plain_;
    }
    return std::nullopt;
  }

  void draw_areas(const Columns& columns, bool after, Bytes peak) {
    add(R"(<svg viewBox="0 0 {0} {0}" preserveAspectRatio="none" role="img" aria-label="Live bytes over the step, {1}: at most {2}">)",
        box, after ? "after" : "before", format_bytes(peak));
    for (const double tick : ticks_.at) {
      add(R"(<path class="grid" d="M0,{:.1f} H{}"/>)", y_of(tick * unit_.bytes), box);
    }
    // Each area reaches down to the ground, and the ones below it are painted over it.
    for (std::size_t layer = layer_count; layer-- > 0;) draw_area(columns, layer);
    if (const auto share = backward_begins(after)) {
      add(R"(<path class="backward" d="M{:.1f},0 V{}"><title>backward begins</title></path>)",
          box * *share / most_share_, box);
    }
    if (data_.after) {
      add(R"(<path class="budget" d="M0,{:.1f} H{}"><title>budget: {}</title></path>)",
          y_of(static_cast<double>(data_.plan().budget)), box, format_bytes(data_.plan().budget));
    }
    text_ += "</svg>";
  }

  void draw_area(const Columns& columns, std::size_t layer) {
    const std::size_t count = columns.layers.size();
    Bytes most = 0;
    std::string path = fmt::format("M0,{}", box);
    double drawn = -1;
    const auto x_of = [&](std::size_t column) {
      return box * width_of(columns) * static_cast<double>(column) / static_cast<double>(count);
    };
    for (std::size_t column = 0; column < count; ++column) {
      Bytes top = 0;
      for (std::size_t i = 0; i <= layer; ++i) top += columns.layers[column].of[i];
      most = std::max(most, columns.layers[column].of[layer]);
      const double y = y_of(static_cast<double>(top));
      if (column > 0 && std::abs(y - drawn) < 0.05) continue;
      if (column > 0) path += fmt::format("H{:.1f}", x_of(column));
      path += fmt::format("V{:.1f}", y);
      drawn = y;
    }
    if (most == 0) return;
    add(R"(<path class="{}" d="{}H{:.1f}V{}Z"><title>{}: at most {}, {} at the peak</title></path>)",
        layer_classes[layer], path, x_of(count), box, name(static_cast<MemoryLayer>(layer)), format_bytes(most),
        format_bytes(at_peak(columns).of[layer]));
  }

  // SVG as well, but not stretched: the page's content policy refuses positions in style attributes.
  void draw_labels() {
    add(R"(<svg class="words-on-plot">)");
    for (const double tick : ticks_.at) {
      add(R"(<text class="y" x="0" y="{:.2f}%">{:.6g} {}</text>)", percent_down(tick * unit_.bytes), tick, unit_.name);
    }
    for (const double tick : times_.at) {
      add(R"(<text class="x" x="{:.2f}%" y="100%">{:.6g} %</text>)", tick / most_share_, tick);
    }
    if (data_.after) {
      add(R"(<text class="limit" x="100%" y="{:.2f}%">budget {}</text>)",
          percent_down(static_cast<double>(data_.plan().budget)), format_bytes(data_.plan().budget));
    }
    add("</svg>");
  }

  [[nodiscard]] std::string peak_sentence(const Columns& columns, Bytes peak, bool after) const {
    if (columns.layers.empty()) return "Nothing runs.";
    const std::size_t column = peak_column(columns);
    const double share = most_share_ * width_of(columns) * (static_cast<double>(column) + 0.5) /
                         static_cast<double>(columns.layers.size());
    const auto begins = backward_begins(after);
    return fmt::format("Peak: {} live, at {} of the step.{}", format_bytes(peak), html(percent(share)),
                       begins ? fmt::format(" Backward begins at {}.", html(percent(*begins))) : "");
  }

  [[nodiscard]] std::string after_cell(std::size_t layer) const {
    if (!data_.columns_after) return "";
    return fmt::format("<td>{}</td>", format_bytes(at_peak(*data_.columns_after).of[layer]));
  }

  const PageData& data_;
  double most_bytes_ = 1, most_share_ = 1, plain_ = 0;
  ByteUnit unit_;
  Ticks ticks_, times_;
  std::string text_;
};

}  // namespace

std::string memory_section(const PageData& data) {
  MemoryPicture picture(data);
  std::string text = "<section aria-labelledby=\"memory\">\n<h2 id=\"memory\">Memory over the step</h2>\n";
  text += "<p>Live bytes, by what they are. Time is a share of the step without Reprise.</p>\n";
  text += picture.legend() + picture.draw(MemoryPicture::Side::before);
  if (data.after) text += picture.draw(MemoryPicture::Side::after) + picture.lanes();
  return text + picture.key() + "</section>\n";
}

}  // namespace reprise::internal
