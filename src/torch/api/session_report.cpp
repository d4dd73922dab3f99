#include "reprise/torch/session_report.h"

#include "reprise/plan/curve.h"
#include "reprise/report/page.h"
#include "reprise/trace/error.h"

namespace reprise {

void write_report(const std::filesystem::path& path, Session& session, const ReportOptions& options) {
  session.wait_for_plan();
  const std::optional<Trace> trace = session.trace();
  if (!trace) {
    throw BadInput("", "report", "no step has been recorded from its first operator to the end of backward yet");
  }
  const std::optional<Plan> plan = session.plan();
  const Summary summary = session.summary();
  std::optional<Curve> curve;
  if (options.time_limit.count() > 0) {
    CurveOptions wanted;
    wanted.time_limit = options.time_limit;
    wanted.cancel = options.cancel;
    curve = make_curve(*trace, wanted);
  }
  write_page(path, {.title = options.title,
                    .trace = &*trace,
                    .plan = plan ? &*plan : nullptr,
                    .curve = curve ? &*curve : nullptr,
                    .summary = &summary});
}

}  // namespace reprise
