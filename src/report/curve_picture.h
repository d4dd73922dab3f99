// The picture of a curve, by itself or as a part of a page.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reprise/plan/curve.h"

namespace reprise::internal {

// A plan that is to be found on the curve.
struct CurveMark {
  Bytes budget = 0;
  double overhead = 0;
};

struct CurveForm {
  double width = 640, height = 452;  // in units of the picture, in which type has 18 of them
  int legend_columns = 2;
  bool standalone = true;        // has its own title and style; otherwise the page has them
  std::string_view id = "plot";  // of its parts: every picture of a page has another
  std::optional<CurveMark> here = {};
};

[[nodiscard]] std::string curve_picture(const Curve&, std::string_view title, const CurveForm&);

// Returns the rules that a page needs for pictures that are not standalone.
[[nodiscard]] std::string_view curve_style();

}  // namespace reprise::internal
