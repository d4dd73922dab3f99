// Overhead against budget, with the plan of the page on it.
#include <fmt/format.h>

#include "report/curve_picture.h"
#include "report/page_parts.h"
#include "report/svg.h"
#include "report/words.h"
#include "reprise/report/curve_views.h"
#include "reprise/trace/amount.h"

namespace reprise::internal {
namespace {

constexpr std::size_t points_drawn = 40, points_written = 12;

enum class Width { wide, narrow };

std::string picture(const PageData& data, const Curve& curve, Width width) {
  const bool narrow = width == Width::narrow;
  CurveForm form{.width = narrow ? 420.0 : 640.0,
                 .height = narrow ? 440.0 : 430.0,
                 .legend_columns = narrow ? 1 : 2,
                 .standalone = false,
                 .id = narrow ? "narrow" : "wide",
                 .here = {}};
  if (data.after) form.here = CurveMark{data.plan().budget, data.cost_ratio() - 1};
  return fmt::format("<div class=\"{}\">\n{}</div>\n", narrow ? "narrow" : "wide",
                     curve_picture(curve, name_of(data.trace), form));
}

std::string row(const Curve& curve, std::size_t index) {
  const PlanResult& result = *curve.points[index].result;
  const bool knee = curve.knee == index;
  return fmt::format("<tr{}><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                     knee ? " class=\"marked\"" : "", format_bytes(result.budget), knee ? " <small>knee</small>" : "",
                     share_of(result.budget, curve.keep_everything_peak), html(percent(result.cost_ratio() - 1)),
                     result.status == PlanStatus::optimal ? "optimal" : html(percent(result.lower_bound_ratio() - 1)),
                     result.simulation.replays);
}

std::string table(const Curve& curve) {
  std::string rows;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (curve.points[i].result) rows += row(curve, i);
  }
  return fmt::format(
      "<table class=\"numbers\">\n<thead><tr><th "
      "scope=\"col\">budget</th><th scope=\"col\">share</th><th scope=\"col\">overhead</th><th scope=\"col\">at "
      "least</th><th scope=\"col\">replays</th></tr></thead>\n<tbody>\n{}</tbody>\n</table>\n",
      rows);
}

}  // namespace

Curve thinned(const Curve& curve, std::size_t most) {
  const std::size_t count = curve.points.size();
  if (count <= most) return curve;
  Curve thin = curve;
  thin.points.clear();
  thin.knee.reset();
  std::size_t taken = count;
  for (std::size_t i = 0; i < count; ++i) {
    // The nearest to evenly spread positions, the first and the last among them; and the knee.
    const std::size_t place = i * (most - 1) / (count - 1);
    const bool knee = curve.knee == i;
    if (!knee && taken != count && place == taken) continue;
    if (!knee) taken = place;
    if (knee) thin.knee = thin.points.size();
    thin.points.push_back(curve.points[i]);
  }
  return thin;
}

std::string curve_section(const PageData& data) {
  if (!data.input.curve) return "";
  const Curve curve = thinned(*data.input.curve, points_drawn);
  std::string text = "<section aria-labelledby=\"curve\">\n<h2 id=\"curve\">Overhead against budget</h2>\n";
  text += fmt::format("<p>{}</p>\n", xml_text(advice(curve), 500));
  return text + "<div class=\"beside\">\n" + picture(data, curve, Width::wide) + picture(data, curve, Width::narrow) +
         table(thinned(curve, points_written)) + "</div>\n</section>\n";
}

}  // namespace reprise::internal
