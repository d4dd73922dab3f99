#include <fmt/format.h>

#include <algorithm>

#include "report/curve_picture.h"
#include "report/scale.h"
#include "report/svg.h"
#include "report/words.h"
#include "reprise/report/fit_views.h"
#include "reprise/trace/amount.h"

namespace reprise {
using namespace internal;
namespace {

class FitDrawing {
 public:
  // In units of the picture, as that of a curve has them.
  static constexpr double width = 640, height = 452;
  static constexpr double left = 96, right = width - 22, top = 122, bottom = height - 62;
  static constexpr std::size_t longest_title = 44;  // characters that fit

  FitDrawing(const Fit& fit, std::string_view title) : fit_(fit), title_(title) {
    double most_cost = 0;
    for (const FitPoint& point : fit.points) {
      most_size_ = std::max(most_size_, static_cast<double>(point.size));
      most_cost = std::max(most_cost, point.plain_cost_per_sample());
      if (point.result.has_plan()) most_cost = std::max(most_cost, point.cost_per_sample());
    }
    costs_ = round_ticks(most_cost > 0 ? most_cost : 1, 5);
    if (costs_.at.back() < most_cost) costs_.at.push_back(costs_.at.back() + costs_.step);
  }

  std::string draw() {
    open();
    draw_legend();
    draw_axes();
    draw_line(
        "bound", [](const FitPoint& point) { return point.plain_cost_per_sample(); }, false);
    draw_line(
        "line", [](const FitPoint& point) { return point.cost_per_sample(); }, true);
    draw_points();
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  // One line.
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  void label(double x, double y, std::string_view text, std::string_view anchor = "start") {
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor, xml_text(text, 200));
  }

  [[nodiscard]] double x_of(double size) const { return left + (right - left) * size / most_size_; }
  [[nodiscard]] double x_of(const FitPoint& point) const { return x_of(static_cast<double>(point.size)); }
  [[nodiscard]] double y_of(double cost) const { return bottom - (bottom - top) * cost / costs_.at.back(); }

  void open() {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" class="reprise" role="img" width="{0}" height="{1}" viewBox="0 0 {0} {1}">)",
        width, height);
    add("<title>{}: cost per sample against size</title>", xml_text(title_, 200));
    add("<desc>{}</desc>", xml_text(advice(fit_), 500));
    add("<style>{}</style>", curve_style());
    add(R"(<rect class="paper" width="{}" height="{}"/>)", width, height);
  }

  void draw_legend() {
    add(R"(<text class="title" x="20" y="34">{}</text>)", xml_text(title_, longest_title));
    sample(20, 62, "line", fmt::format("within {}", format_bytes(fit_.budget)));
    sample(330, 62, "bound", "without a budget");
    if (!fit_.largest) return;
    sample(20, 90, "floor", fmt::format("largest: {}", fit_.points[*fit_.largest].size));
    add(R"(<circle class="knee" cx="345" cy="84" r="6"/>)");
    label(370, 90, fmt::format("cheapest: {}", fit_.points[*fit_.cheapest].size));
  }
  void sample(double x, double y, std::string_view kind, std::string_view text) {
    add(R"(<path class="{}" d="M{},{} h30"/>)", kind, x, y - 6);
    label(x + 40, y, text);
  }

  void draw_axes() {
    const double fits = fit_.largest ? x_of(fit_.points[*fit_.largest]) : left;
    add(R"(<rect class="shade" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)", fits, top, right - fits,
        bottom - top);
    for (const double tick : costs_.at) {
      add(R"(<path class="grid" d="M{:.1f},{:.1f} H{:.1f}"/>)", left, y_of(tick), right);
      label(left - 8, y_of(tick) + 6, fmt::format("{:.10g}", tick), "end");
    }
    for (const double tick : round_ticks(most_size_, 6).at) {
      add(R"(<path class="axis" d="M{:.1f},{:.1f} v6"/>)", x_of(tick), bottom);
      label(x_of(tick), bottom + 26, fmt::format("{:.10g}", tick), "middle");
    }
    add(R"(<path class="axis" d="M{:.1f},{:.1f} H{:.1f}"/>)", left, bottom, right);
    if (fit_.largest) add(R"(<path class="floor" d="M{:.1f},{:.1f} V{:.1f}"/>)", fits, top, bottom);
    label((left + right) / 2, height - 10, "size; up: cost per sample", "middle");
  }

  template <typename Cost>
  void draw_line(std::string_view kind, const Cost& cost, bool only_planned) {
    std::string path;
    for (const FitPoint& point : fit_.points) {
      if (only_planned && !point.result.has_plan()) continue;
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", x_of(point), y_of(cost(point)));
    }
    if (!path.empty()) add(R"(<path class="{}" d="{}"/>)", kind, path);
  }

  void draw_points() {
    for (std::size_t i = 0; i < fit_.points.size(); ++i) {
      const FitPoint& point = fit_.points[i];
      if (!point.result.has_plan()) continue;
      const bool cheapest = fit_.cheapest == i;
      add(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>size {}{}: {:.4g} per sample, overhead {}, {}</title></circle>)",
          cheapest ? "knee" : "point", x_of(point), y_of(point.cost_per_sample()), cheapest ? 7 : 4, point.size,
          point.recorded ? "" : " (predicted)", point.cost_per_sample(),
          xml_text(percent(point.result.cost_ratio() - 1), 20), count(point.result.simulation.replays, "replay"));
    }
  }

  const Fit& fit_;
  std::string_view title_;
  double most_size_ = 1;
  Ticks costs_;
  std::string text_;
};

}  // namespace

std::string to_svg(const Fit& fit, std::string_view title) {
  return FitDrawing(fit, title).draw();
}

}  // namespace reprise
