#include "reprise/report/memory_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/layers.h"
#include "report/scale.h"
#include "report/svg.h"
#include "reprise/plan/planner.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::string_view memory_style = R"(
  .reprise { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --grid: #d8dee4; --before: #dfe4ea; --edge: #8b949e; --budget: #b3261e; }
  @media screen and (prefers-color-scheme: dark) {
    .reprise { --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --grid: #30363d; --before: #262d36; --edge: #7d8590; --budget: #ff8a80; }
  }
  .reprise .paper { fill: var(--paper); }
  .reprise .grid { stroke: var(--grid); stroke-width: 1; }
  .reprise .axis { stroke: var(--soft); stroke-width: 1.5; }
  .reprise .before { fill: var(--before); stroke: var(--edge); stroke-width: 1.5; }
  .reprise .budget { stroke: var(--budget); stroke-width: 2.5; stroke-dasharray: 8 5; }
  .reprise .parameters { fill: #6e7781; } .reprise .gradients { fill: #cc79a7; } .reprise .kept { fill: #0072b2; }
  .reprise .packed { fill: #e69f00; } .reprise .replayed { fill: #009e73; } .reprise .other { fill: #a7b0ba; }
  .reprise text { fill: var(--soft); font: 16px system-ui, -apple-system, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif; }
  .reprise .title { fill: var(--ink); font-size: 20px; font-weight: 600; }
  .reprise .strong { fill: var(--ink); font-weight: 600; }
  .reprise .limit { fill: var(--budget); font-weight: 600; }
)";

Simulation proven(const Trace& trace, const Plan& plan) {
  Simulation simulation = simulate(trace, plan, {.record_live = true, .check_budget = true, .record_residences = true});
  if (!simulation.valid()) throw BadInput("", "plan", simulation.broken->sentence);
  return simulation;
}

class MemoryDrawing {
 public:
  static constexpr double width = 820, height = 400;
  static constexpr double left = 84, right = 800, top = 84, bottom = 350;
  static constexpr std::size_t most_columns = 300;

  MemoryDrawing(const Trace& trace, const Plan& plan, std::string_view title)
      : title_(title),
        budget_(plan.budget),
        before_(of(trace, keep_everything(trace))),
        after_(of(trace, plan)),
        plain_(trace.total_cost() > 0 ? trace.total_cost() : 1) {
    most_bytes_ =
        static_cast<double>(std::max({before_.peak, after_.peak, budget_, Bytes{1}})) * 1.14;  // room for a label
    most_cost_ = std::max(std::max(before_.columns.cost, after_.columns.cost), 1e-12);
  }

  std::string draw() {
    open();
    draw_axes();
    draw_before();
    // Each area reaches down to the ground, and the ones below it are painted over it.
    for (std::size_t layer = layer_count; layer-- > 0;) draw_layer(layer);
    draw_labels();
    draw_legend();
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  struct Side {
    Columns columns;
    Bytes peak = 0;
  };

  static Side of(const Trace& trace, const Plan& plan) {
    const Simulation simulation = proven(trace, plan);
    return {columns_of(trace, plan, simulation, most_columns), simulation.peak};
  }

  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  void label(double x, double y, std::string_view text, std::string_view anchor, std::string_view kind = "") {
    add(R"(<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", kind, x, y, anchor,
        xml_text(text, 120));
  }

  [[nodiscard]] double x_of(double cost) const { return left + (right - left) * cost / most_cost_; }
  [[nodiscard]] double y_of(double bytes) const { return bottom - (bottom - top) * bytes / most_bytes_; }

  // Returns the outline of the layers up to `layer`.
  [[nodiscard]] std::string outline(const Columns& columns, std::size_t layer) const {
    std::string path = fmt::format("M{:.1f},{:.1f}", left, bottom);
    const auto count = static_cast<double>(columns.layers.size());
    for (std::size_t column = 0; column < columns.layers.size(); ++column) {
      Bytes bytes = 0;
      for (std::size_t i = 0; i <= layer; ++i) bytes += columns.layers[column].of[i];
      path += fmt::format("V{:.1f}H{:.1f}", y_of(static_cast<double>(bytes)),
                          x_of(columns.cost * static_cast<double>(column + 1) / count));
    }
    return path + fmt::format("V{:.1f}Z", bottom);
  }

  void open() {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" class="reprise" role="img" width="{0}" height="{1}" viewBox="0 0 {0} {1}">)",
        width, height);
    add("<title>{}</title>", xml_text(title_, 200));
    add("<desc>Live bytes over one step: {} if everything is kept, {} with the plan, within a budget of {}.</desc>",
        format_bytes(before_.peak), format_bytes(after_.peak), format_bytes(budget_));
    add("<style>{}</style>", memory_style);
    add(R"(<rect class="paper" width="{}" height="{}"/>)", width, height);
    label(20, 32, title_, "start", "title");
  }

  void draw_axes() {
    const ByteUnit unit = unit_for(static_cast<Bytes>(most_bytes_));
    for (const double tick : round_ticks(most_bytes_ / unit.bytes, 5).at) {
      add(R"(<path class="grid" d="M{:.1f},{:.1f} H{:.1f}"/>)", left, y_of(tick * unit.bytes), right);
      label(left - 8, y_of(tick * unit.bytes) + 5, fmt::format("{:.10g} {}", tick, unit.name), "end");
    }
    for (const double tick : round_ticks(most_cost_ / plain_, 6).at) {
      label(x_of(tick * plain_), bottom + 24, fmt::format("{:.0f} %", 100 * tick), "middle");
    }
    label((left + right) / 2, height - 6, "time, as a share of the step without Reprise", "middle");
  }

  void draw_before() {
    add(R"(<path class="before" d="{}"><title>if everything is kept: at most {}</title></path>)",
        outline(before_.columns, layer_count - 1), format_bytes(before_.peak));
  }

  [[nodiscard]] bool is_there(std::size_t layer) const {
    return std::any_of(after_.columns.layers.begin(), after_.columns.layers.end(),
                       [layer](const LayerBytes& column) { return column.of[layer] > 0; });
  }

  void draw_layer(std::size_t layer) {
    if (!is_there(layer)) return;
    add(R"(<path class="{}" d="{}"><title>{}</title></path>)", layer_classes[layer], outline(after_.columns, layer),
        name(static_cast<MemoryLayer>(layer)));
  }

  void draw_labels() {
    add(R"(<path class="axis" d="M{:.1f},{:.1f} H{:.1f}"/>)", left, bottom, right);
    const double y = y_of(static_cast<double>(budget_));
    add(R"(<path class="budget" d="M{:.1f},{:.1f} H{:.1f}"/>)", left, y, right);
    label(right, y - 8, fmt::format("budget {}", format_bytes(budget_)), "end", "limit");
    const auto& layers = before_.columns.layers;
    if (layers.empty()) return;
    const auto highest = std::max_element(
        layers.begin(), layers.end(), [](const LayerBytes& a, const LayerBytes& b) { return a.total() < b.total(); });
    const double share = static_cast<double>(highest - layers.begin()) / static_cast<double>(layers.size());
    const double x = std::min(x_of(before_.columns.cost * share), right - 220);
    label(x, y_of(static_cast<double>(before_.peak)) - 8, fmt::format("plain: {}", format_bytes(before_.peak)), "start",
          "strong");
  }

  void draw_legend() {
    double x = 20;
    const double y = 62;
    for (std::size_t layer = 0; layer < layer_count; ++layer) {
      if (!is_there(layer)) continue;
      const std::string_view text = name(static_cast<MemoryLayer>(layer));
      add(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="12" height="12" rx="2"/>)", layer_classes[layer], x, y - 11);
      label(x + 18, y, text, "start");
      x += 34 + 8.6 * static_cast<double>(text.size());
    }
  }

  std::string_view title_;
  const Bytes budget_;
  const Side before_, after_;
  const double plain_;
  double most_bytes_ = 1, most_cost_ = 1;
  std::string text_;
};

}  // namespace

std::string memory_picture(const Trace& trace, const Plan& plan, std::string_view title) {
  return MemoryDrawing(trace, plan, title).draw();
}

}  // namespace reprise
