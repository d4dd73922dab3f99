#include "report/curve_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/scale.h"
#include "report/svg.h"
#include "report/words.h"
#include "reprise/report/curve_views.h"
#include "reprise/trace/amount.h"

namespace reprise::internal {
namespace {

class CurveDrawing {
 public:
  // In units of the picture. Type of 18 in a picture of 640 is still 11 pixels high when the picture is 400 wide.
  static constexpr double row_height = 28;
  static constexpr double left = 76;
  static constexpr std::size_t longest_title = 44;  // characters that fit

  CurveDrawing(const Curve& curve, std::string_view title, const CurveForm& form)
      : curve_(curve), title_(title), form_(form), right_(form.width - 22), bottom_(form.height - 62) {
    for (const CurvePoint& point : curve.points) {
      if (point.result) points_.push_back(&point);
    }
    most_bytes_ = std::max<double>(1, static_cast<double>(curve.keep_everything_peak));
    const double largest = largest_shown_overhead(curve);
    const double shown = largest > 0 ? std::max(0.001, largest) : 0.01;
    overheads_ = round_ticks(shown, 5);
    // One round number more than needed, unless the curve ends at one.
    if (overheads_.at.back() < shown) overheads_.at.push_back(overheads_.at.back() + overheads_.step);
    most_overhead_ = overheads_.at.back();
  }

  std::string draw() {
    open();
    top_ = draw_legend();
    clip();
    draw_axes();
    draw_floor();
    draw_curve();
    draw_points();
    if (form_.here) draw_here();
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

  [[nodiscard]] double x_of(double bytes) const { return left + (right_ - left) * bytes / most_bytes_; }
  [[nodiscard]] double x_of(const CurvePoint& point) const { return x_of(static_cast<double>(point.budget)); }
  [[nodiscard]] double y_of(double overhead) const { return bottom_ - (bottom_ - top_) * overhead / most_overhead_; }
  [[nodiscard]] static double overhead(const CurvePoint& point) { return point.result->cost_ratio() - 1; }
  [[nodiscard]] static double bound(const CurvePoint& point) { return point.result->lower_bound_ratio() - 1; }

  [[nodiscard]] bool is_narrow() const { return form_.width < 500; }

  void open() {
    if (form_.standalone) {
      add(R"(<svg xmlns="http://www.w3.org/2000/svg" class="reprise" role="img" width="{0}" height="{1}" viewBox="0 0 {0} {1}">)",
          form_.width, form_.height);
    } else {
      add(R"(<svg class="reprise" role="img" viewBox="0 0 {} {}">)", form_.width, form_.height);
    }
    add("<title>{}: overhead against budget</title>", xml_text(title_, 200));
    add("<desc>{}</desc>", xml_text(advice(curve_), 500));
    if (form_.standalone) add("<style>{}</style>", curve_style());
    add(R"(<rect class="paper" width="{}" height="{}"/>)", form_.width, form_.height);
  }

  // Whatever leaves the picture at the top is cut off there.
  void clip() {
    add(R"(<clipPath id="reprise-{}"><rect x="{}" y="{}" width="{}" height="{}"/></clipPath>)", form_.id, left, top_,
        right_ - left, bottom_ - top_ + 4);
  }

  // Above the plot, where nothing can be in its way. Gives where the plot may begin.
  double draw_legend() {
    double y = 6;
    if (form_.standalone) {
      add(R"(<text class="title" x="20" y="34">{}</text>)", xml_text(title_, longest_title));
      y = 34;
    }
    int column = form_.legend_columns;
    const double step = 310;
    const auto next = [&] {  // where the next entry begins
      if (column == form_.legend_columns) {
        column = 0;
        y += row_height;
      }
      return 20 + step * column++;
    };
    double x = next();
    sample(x, y, "line", "overhead");
    x = next();
    sample(x, y, "bound", "lower bound");
    if (curve_.knee) {
      const CurvePoint& knee = curve_.points[*curve_.knee];
      x = next();
      add(R"(<circle class="knee" cx="{}" cy="{}" r="6"/>)", x + 15, y - 6);
      label(x + 40, y, fmt::format("knee: {}, {}", format_bytes(knee.budget), percent(overhead(knee))));
    }
    x = next();
    sample(x, y, "floor", fmt::format("floor: {}", format_bytes(curve_.floor)));
    if (const auto& here = form_.here) {
      x = next();
      diamond(x + 15, y - 6, "");
      label(x + 40, y, fmt::format("here: {}, {}", format_bytes(here->budget), percent(here->overhead)));
    }
    return y + 32;
  }

  void diamond(double x, double y, std::string_view inside) {
    add(R"(<path class="here" d="M{:.1f},{:.1f} l9,9 l-9,9 l-9,-9 z">{}</path>)", x, y - 9, inside);
  }

  // Where the plan is: on the curve or above it, or at the edge of the picture.
  void draw_here() {
    const double x = x_of(std::min(static_cast<double>(form_.here->budget), most_bytes_));
    const double y = y_of(std::min(form_.here->overhead, most_overhead_));
    diamond(x, y,
            fmt::format("<title>this plan: {}, overhead {}</title>", format_bytes(form_.here->budget),
                        percent_text(form_.here->overhead)));
  }

  void sample(double x, double y, std::string_view kind, std::string_view text) {
    add(R"(<path class="{}" d="M{},{} h30"/>)", kind, x, y - 6);
    label(x + 40, y, text);
  }

  void label(double x, double y, std::string_view text, std::string_view anchor = "start") {
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor, xml_text(text, 200));
  }

  void draw_axes() {
    if (curve_.floor > 0) {
      add(R"(<rect class="shade" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)", left, top_,
          x_of(static_cast<double>(curve_.floor)) - left, bottom_ - top_);
    }
    for (const double tick : overheads_.at) {
      add(R"(<path class="grid" d="M{:.1f},{:.1f} H{:.1f}"/>)", left, y_of(tick), right_);
      label(left - 8, y_of(tick) + 6, tick_percent(tick), "end");
    }
    const ByteUnit unit = unit_for(curve_.keep_everything_peak);
    for (const double tick : round_ticks(most_bytes_ / unit.bytes, is_narrow() ? 4 : 6).at) {
      add(R"(<path class="axis" d="M{:.1f},{:.1f} v6"/>)", x_of(tick * unit.bytes), bottom_);
      label(x_of(tick * unit.bytes), bottom_ + 26, fmt::format("{:.10g}", tick), "middle");
    }
    add(R"(<path class="axis" d="M{:.1f},{:.1f} H{:.1f}"/>)", left, bottom_, right_);
    const std::string everything = fmt::format("; everything needs {}", format_bytes(curve_.keep_everything_peak));
    label((left + right_) / 2, form_.height - 10,
          fmt::format("budget in {}{}", unit.name, is_narrow() ? "" : everything), "middle");
  }

  [[nodiscard]] std::string tick_percent(double tick) const {
    const double step = 100 * overheads_.step;
    return fmt::format("{:.{}f} %", 100 * tick, step < 0.0995 ? 2 : step < 0.995 ? 1 : 0);
  }

  void draw_floor() {
    const double x = x_of(static_cast<double>(curve_.floor));
    add(R"(<path class="floor" d="M{:.1f},{:.1f} V{:.1f}"/>)", x, top_, bottom_);
  }

  void draw_curve() {
    std::string overheads, bounds, back;
    for (const CurvePoint* point : points_) {
      const char* const command = overheads.empty() ? "M" : " L";
      overheads += fmt::format("{}{:.1f},{:.1f}", command, x_of(*point), y_of(overhead(*point)));
      bounds += fmt::format("{}{:.1f},{:.1f}", command, x_of(*point), y_of(bound(*point)));
      back = fmt::format(" L{:.1f},{:.1f}", x_of(*point), y_of(bound(*point))) + back;
    }
    add("<g clip-path=\"url(#reprise-{})\">", form_.id);
    add(R"(<path class="band" d="{}{} Z"/>)", overheads, back);
    add(R"(<path class="bound" d="{}"/>)", bounds);
    add(R"(<path class="line" d="{}"/>)", overheads);
    text_ += "</g>\n";
  }

  void draw_points() {
    for (const CurvePoint* point : points_) {
      if (overhead(*point) > most_overhead_) {
        add(R"(<path class="point" d="M{:.1f},{:.1f} m-7,10 l7,-10 l7,10 z">{}</path>)", x_of(*point), top_,
            hover(*point));
        // Above the plot, and not over the numbers of the axis.
        const double x = x_of(*point);
        label(std::max(x, left + 28), top_ - 6, percent(overhead(*point)), "middle");
        continue;
      }
      const bool knee = curve_.knee && point == &curve_.points[*curve_.knee];
      add(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle>)", knee ? "knee" : "point", x_of(*point),
          y_of(overhead(*point)), knee ? 7 : 4, hover(*point));
    }
  }

  [[nodiscard]] static std::string hover(const CurvePoint& point) {
    return fmt::format("<title>{} ({} of everything): overhead {}, at least {}, {}</title>", format_bytes(point.budget),
                       share_of(point.budget, point.result->keep_everything_peak), percent_text(overhead(point)),
                       percent_text(bound(point)), count(point.result->simulation.replays, "replay"));
  }
  // "<0.1 %" as it has to be written here.
  [[nodiscard]] static std::string percent_text(double share) { return xml_text(percent(share), 20); }

  const Curve& curve_;
  std::string_view title_;
  const CurveForm& form_;
  const double right_, bottom_;
  double top_ = 0;
  std::vector<const CurvePoint*> points_;  // those with a result
  Ticks overheads_;
  double most_bytes_ = 1, most_overhead_ = 1;
  std::string text_;
};

}  // namespace

std::string curve_picture(const Curve& curve, std::string_view title, const CurveForm& form) {
  return CurveDrawing(curve, title, form).draw();
}

}  // namespace reprise::internal

namespace reprise {

std::string to_svg(const Curve& curve, std::string_view title) {
  return internal::curve_picture(curve, title, {});
}

}  // namespace reprise
