// The picture of ./bench compare. Its colours follow the reader's: light or dark.
#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "compare_document.h"
#include "compare_findings.h"
#include "compare_labels.h"
#include "report/scale.h"
#include "report/svg.h"

namespace reprise::benchmarks {
using namespace internal;
namespace {

// In units of the picture.
constexpr double width = 860, panel_height = 370, head = 96;
constexpr double left = 74, right = width - 24, top = 44, bottom = panel_height - 62;
constexpr double type = 14, mark_radius = 5;

constexpr const char* style = R"(<style>
  .reprise { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --grid: #d8dee4; --line: #0a63b5; --rival: #8a4600; --wrong: #c4162a; }
  @media (prefers-color-scheme: dark) {
    .reprise { --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --grid: #30363d; --line: #62b0ff; --rival: #e0a43a; --wrong: #ff7b72; }
  }
  .paper { fill: var(--paper); }
  .grid { stroke: var(--grid); stroke-width: 1; }
  .axis { stroke: var(--soft); stroke-width: 1.5; }
  .line { fill: none; stroke: var(--line); stroke-width: 2.5; stroke-linejoin: round; }
  .point { fill: var(--line); }
  .rival { fill: var(--paper); stroke: var(--rival); stroke-width: 2; }
  .wrong { fill: var(--paper); stroke: var(--wrong); stroke-width: 2; }
  .cross { fill: none; stroke: var(--wrong); stroke-width: 2; }
  .plain { fill: var(--soft); }
  .leader { stroke: var(--grid); stroke-width: 1.2; }
  text { fill: var(--soft); font: 14px system-ui, -apple-system, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif; }
  .title { fill: var(--ink); font-size: 18px; font-weight: 600; }
  .of-rival { fill: var(--rival); }
  .of-wrong { fill: var(--wrong); }
</style>
)";

// Square: re-running in C++; circle: checkpoint(); diamond: selective; triangle: compiled. Around (0, 0).
std::string shape_of(const Rival& rival) {
  if (rival.engine == Engine::cpp) return "m-5,-5 h10 v10 h-10 z";
  if (rival.way.starts_with("selective")) return "m0,-7 l7,7 l-7,7 l-7,-7 z";
  if (rival.way.starts_with("budget")) return "m0,-6.5 l6.5,11.5 h-13 z";
  return "m-5.5,0 a5.5,5.5 0 1,0 11,0 a5.5,5.5 0 1,0 -11,0 z";
}

std::string number(double value) {
  return fixed(value, 1);
}

class Panel {
 public:
  Panel(const ModelResult& model, double offset) : model_(model), offset_(offset), findings_(findings_of(model)) {
    double most = 1.1;
    for (const Finding& finding : findings_) most = std::max(most, finding.time);
    for (const ReprisePoint& point : model.reprise) {
      if (point.measured.ratios.empty()) continue;
      points_.push_back(&point);
      least_ = std::min(least_, time_of(point) - 0.02);
      most = std::max(most, time_of(point));
    }
    for (const Finding& finding : findings_) least_ = std::min(least_, finding.time - 0.02);
    overheads_ = round_ticks(most - 1, 6);
    if (overheads_.at.back() + 1 < most) overheads_.at.push_back(overheads_.at.back() + overheads_.step);
    most_ = overheads_.at.back() + 1;
  }

  std::string draw() {
    draw_axes();
    draw_curve();
    draw_rivals();
    return out_.str();
  }

 private:
  [[nodiscard]] double x_of(double share) const { return left + (right - left) * std::min(share, 1.05) / 1.05; }
  [[nodiscard]] double y_of(double time) const {
    return offset_ + bottom - (bottom - top) * (time - least_) / (most_ - least_);
  }
  [[nodiscard]] static double time_of(const ReprisePoint& point) { return range_of(point.measured.ratios).median; }
  [[nodiscard]] double x_of(const ReprisePoint& point) const { return x_of(share_of_plain(point, model_)); }
  [[nodiscard]] double y_of(const ReprisePoint& point) const { return y_of(time_of(point)); }

  void text(double x, double y, const std::string& words, const std::string& anchor, const std::string& kind = "") {
    out_ << "<text" << (kind.empty() ? "" : " class=\"" + kind + "\"") << " x=\"" << number(x) << "\" y=\"" << number(y)
         << "\" text-anchor=\"" << anchor << "\">" << xml_text(words, 200) << "</text>\n";
  }
  void path(const std::string& kind, const std::string& data, const std::string& hover = "") {
    out_ << "<path class=\"" << kind << "\" d=\"" << data << "\"";
    if (hover.empty()) {
      out_ << "/>\n";
    } else {
      out_ << "><title>" << xml_text(hover, 300) << "</title></path>\n";
    }
  }
  static std::string at(double x, double y) { return number(x) + "," + number(y); }

  void draw_axes() {
    for (const ComparedModel& known : compared_models()) {
      if (known.name == model_.model) text(20, offset_ + 26, known.title, "start", "title");
    }
    for (const double tick : overheads_.at) {
      path("grid", "M" + at(left, y_of(1 + tick)) + " H" + number(right));
      text(left - 10, y_of(1 + tick) + 5, fixed(1 + tick, overheads_.step < 0.1 ? 2 : 1), "end");
    }
    for (int tenths = 0; tenths <= 10; tenths += 1) {
      path("axis", "M" + at(x_of(tenths / 10.0), offset_ + bottom) + " v5");
      text(x_of(tenths / 10.0), offset_ + bottom + 21, fixed(tenths / 10.0, 1), "middle");
    }
    path("axis", "M" + at(left, offset_ + bottom) + " H" + number(right));
    text((left + right) / 2, offset_ + bottom + 43, "peak, as a share of plain's", "middle");
    out_ << "<text transform=\"translate(20," << number(offset_ + (top + bottom) / 2)
         << ") rotate(-90)\" text-anchor=\"middle\">time, of plain's</text>\n";
  }

  void draw_curve() {
    std::string line;
    for (const ReprisePoint* point : points_) line += (line.empty() ? "M" : " L") + at(x_of(*point), y_of(*point));
    if (!line.empty()) path("line", line);
    for (const ReprisePoint* point : points_) {
      out_ << "<circle class=\"point\" cx=\"" << number(x_of(*point)) << "\" cy=\"" << number(y_of(*point))
           << "\" r=\"3.5\"><title>"
           << xml_text("Reprise, peak " + fixed(share_of_plain(*point, model_), 3) + ": " +
                           text_of(range_of(point->measured.ratios)),
                       300)
           << "</title></circle>\n";
    }
  }

  // Labels keep off marks, points and the curve.
  Labels empty_labels() const {
    Labels labels({left, offset_ + top - 8, right, offset_ + bottom}, type);
    const auto avoid_around = [&](double x, double y, double radius) {
      labels.avoid({x - radius, y - radius, x + radius, y + radius});
    };
    for (const Finding& finding : findings_) avoid_around(x_of(finding.share), y_of(finding.time), mark_radius + 2);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      avoid_around(x_of(*points_[i]), y_of(*points_[i]), 4);
      constexpr int parts = 12;
      for (int k = 1; i > 0 && k < parts; ++k) {
        const double part = static_cast<double>(k) / parts;
        avoid_around(std::lerp(x_of(*points_[i - 1]), x_of(*points_[i]), part),
                     std::lerp(y_of(*points_[i - 1]), y_of(*points_[i]), part), 2);
      }
    }
    return labels;
  }

  void draw_rivals() {
    Labels labels = empty_labels();
    out_ << "<circle class=\"plain\" cx=\"" << number(x_of(1)) << "\" cy=\"" << number(y_of(1)) << "\" r=\"4\"/>\n";
    const LabelPlace beside_plain = labels.place(x_of(1), y_of(1), "plain");
    text(beside_plain.x, beside_plain.y, "plain", beside_plain.anchor);
    std::ostringstream marks;  // above all leaders
    for (const Finding& finding : findings_) {
      const Rival& rival = finding.rival->rival;
      const double x = x_of(finding.share), y = y_of(finding.time);
      const bool wrong = is_wrong(finding.sound);
      const LabelPlace place = labels.place(x, y, rival.mark);
      if (place.far_from_mark) {
        path("leader", "M" + at(x, y) + " L" + at(place.x, place.y - 0.35 * type));
      }
      text(place.x, place.y, rival.mark, place.anchor, wrong ? "of-wrong" : "of-rival");
      std::swap(marks, out_);
      path(wrong ? "wrong" : "rival", "M" + at(x, y) + " " + shape_of(rival),
           rival.label + ", peak " + fixed(finding.share, 3) + ": " +
               text_of(range_of(finding.rival->measured.ratios)) + (wrong ? ", WRONG RESULTS" : ""));
      if (wrong) path("cross", "M" + at(x - 8, y - 8) + " l16,16 m0,-16 l-16,16");
      std::swap(marks, out_);
    }
    out_ << marks.str();
  }

  const ModelResult& model_;
  double offset_;
  std::vector<Finding> findings_;
  std::vector<const ReprisePoint*> points_;  // that were measured
  Ticks overheads_;
  double least_ = 1, most_ = 1;
  std::ostringstream out_;
};

// What the marks mean, in two lines.
std::string legend() {
  std::ostringstream out;
  const auto entry = [&](double x, double y, const std::string& mark, const std::string& words) {
    out << mark << "<text x=\"" << x + 26 << "\" y=\"" << y + 5 << "\">" << words << "</text>\n";
  };
  const auto rival = [&](double x, double y, Engine engine, const std::string& way, const std::string& words) {
    const std::string place = "M" + number(x + 10) + "," + number(y) + " ";
    entry(x, y, "<path class=\"rival\" d=\"" + place + shape_of({engine, way, "", ""}) + "\"/>", words);
  };
  const double first = 46, second = 74;
  entry(20, first, "<path class=\"line\" d=\"M18,46 h20\"/><circle class=\"point\" cx=\"28\" cy=\"46\" r=\"3.5\"/>",
        "Reprise");
  rival(130, first, Engine::cpp, "", "re-running in C++");
  rival(310, first, Engine::python, "", "PyTorch's checkpoint");
  rival(20, second, Engine::python, "selective", "PyTorch's selective checkpoint (SAC)");
  rival(310, second, Engine::python, "budget", "torch.compile with a memory budget");
  entry(500, first, "<path class=\"cross\" d=\"M502,38 l16,16 m0,-16 l-16,16\"/>", "wrong results");
  return out.str();
}

}  // namespace

std::string to_svg(const Results& results) {
  const double height = head + panel_height * static_cast<double>(results.models.size());
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"reprise\" role=\"img\" width=\"" << width << "\" height=\""
      << height << "\" viewBox=\"0 0 " << width << " " << height << "\">\n"
      << "<title>Time against peak of Reprise and of its rivals</title>\n"
      << style << "<rect class=\"paper\" width=\"" << width << "\" height=\"" << height << "\"/>\n"
      << "<text class=\"title\" x=\"20\" y=\"26\">Time of a training step against its peak; left and low is "
         "better</text>\n"
      << legend();
  double offset = head;
  for (const ModelResult& model : results.models) {
    out << Panel(model, offset).draw();
    offset += panel_height;
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace reprise::benchmarks
