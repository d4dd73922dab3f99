// What `curve` and `example` share.
#pragma once

#include "reprise/plan/curve.h"

namespace reprise::tools {

// With a progress bar, and Ctrl-C stops it.
[[nodiscard]] Curve curve_with_progress(const Trace&, CurveOptions options);

// The table and the advice below it.
[[nodiscard]] std::string curve_text(const Curve&);

}  // namespace reprise::tools
