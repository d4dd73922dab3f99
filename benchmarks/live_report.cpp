#include "live_report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <stdexcept>

#include "reprise/trace/amount.h"

namespace reprise::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

// As many digits as a measurement of this kind means.
double rounded(double value, int digits = 4) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string fixed(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

std::string share_of(Bytes bytes, Bytes whole) {
  return fixed(whole == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(whole), 4);
}

std::string range(const Spread& spread) {
  return fixed(spread.median, 3) + "  [" + fixed(spread.low, 3) + ", " + fixed(spread.high, 3) + "]";
}

void line(std::ostream& out, const char* label, const std::string& value) {
  out << "  " << std::left << std::setw(18) << label << value << '\n';
}

std::string yes(bool value) {
  return value ? "yes" : "NO";
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("[bench live] no values");
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const double place = part * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - static_cast<double>(below));
  };
  return {at(0.25), at(0.5), at(0.75)};
}

void write_json(std::ostream& out, const Report& r) {
  Json row{{"model", r.model},
           {"optimizer", r.optimizer},
           {"budget_bytes", r.budget},
           {"peak_bytes", r.peak},
           {"plain_peak_bytes", r.plain_peak},
           {"level_bytes", r.level},
           {"level_growth_bytes", r.level_growth},
           {"ratio", rounded(r.ratio.median)},
           {"ratio_low", rounded(r.ratio.low)},
           {"ratio_high", rounded(r.ratio.high)},
           {"plain_again_ratio", rounded(r.plain_again.median)},
           {"plain_again_low", rounded(r.plain_again.low)},
           {"plain_again_high", rounded(r.plain_again.high)},
           {"repetitions", r.repetitions},
           {"steps_per_sample", r.steps_per_sample},
           {"plain_seconds", rounded(r.plain_seconds, 6)},
           {"first_step_ratio", r.first ? Json(rounded(r.first->median)) : Json(nullptr)},
           {"replays", r.replays},
           {"replay_seconds", rounded(r.replay_seconds, 6)},
           {"pack_seconds", rounded(r.pack_seconds, 6)},
           {"forgotten_bytes", r.forgotten},
           {"packed_bytes", r.packed},
           {"promised_peak_bytes", or_null(r.promised_peak)},
           {"promised_overhead", or_null(r.promised_overhead)},
           {"followed_plan", r.followed_plan},
           {"gap", or_null(r.gap)},
           {"planning_seconds", rounded(r.planning_seconds, 3)},
           {"bit_equal", r.bit_equal},
           {"verified", r.verified},
           {"divergences", r.divergences},
           {"rss_growth_bytes", or_null(r.resident_growth)},
           {"rss_anonymous_growth_bytes", or_null(r.anonymous_growth)}};
  if (r.region) {
    row["region_blocks"] = r.region->every;
    row["region_ratio"] = rounded(r.region->ratio.median);
    row["region_ratio_low"] = rounded(r.region->ratio.low);
    row["region_ratio_high"] = rounded(r.region->ratio.high);
    row["region_peak_bytes"] = r.region->peak;
    row["region_gradients_equal"] = r.region->gradients_equal;
    row["region_buffers_equal"] = r.region->buffers_equal;
  }
  out << row.dump() << std::endl;
}

void write_text(std::ostream& out, const Report& r) {
  const auto bytes = [&](Bytes b) { return format_bytes(b) + "  (" + share_of(b, r.plain_peak) + " of plain)"; };
  out << r.model << ", optimizer " << r.optimizer << ", bytes above a level of " << format_bytes(r.level) << '\n';
  line(out, "plain peak", format_bytes(r.plain_peak) + ", " + fixed(r.plain_seconds, 4) + " s of CPU a step");
  line(out, "budget", bytes(r.budget));
  line(out, "peak", format_bytes(r.peak) + "  (" + share_of(r.peak, r.budget) + " of the budget)");
  line(out, "promised peak", r.promised_peak ? bytes(*r.promised_peak) : "no plan");
  line(out, "bit-equal", yes(r.bit_equal));
  line(out, "ratio",
       range(r.ratio) + " in " + std::to_string(r.repetitions) + " repetitions of " +
           std::to_string(r.steps_per_sample) + " step(s)");
  line(out, "plain again", range(r.plain_again));
  if (r.first) line(out, "first step", range(*r.first));
  line(out, "replays",
       std::to_string(r.replays) + " in " + fixed(r.replay_seconds, 4) + " s, packing " + fixed(r.pack_seconds, 4) +
           " s");
  line(out, "followed a plan",
       yes(r.followed_plan) + ", " + std::to_string(r.divergences) + " divergences, " + fixed(r.planning_seconds, 1) +
           " s of waiting for plans" + (r.gap ? ", gap " + fixed(100 * *r.gap, 2) + " %" : ""));
  line(out, "verified", std::to_string(r.verified) + " values");
  if (r.level_growth != 0) line(out, "level grew by", format_bytes(r.level_growth));
  if (r.resident_growth) {
    line(out, "resident growth",
         format_bytes(*r.resident_growth) + ", of it anonymous " +
             (r.anonymous_growth ? format_bytes(*r.anonymous_growth) : "unknown"));
  }
  if (!r.region) return;
  out << "regions of " << r.region->every << " block(s), re-run as a whole\n";
  line(out, "ratio", range(r.region->ratio));
  line(out, "peak", bytes(r.region->peak));
  line(out, "bit-equal", "gradients " + yes(r.region->gradients_equal) + ", buffers " + yes(r.region->buffers_equal));
}

void write_json(std::ostream& out, const SmallestReport& r) {
  const Json row{{"model", r.model},
                 {"optimizer", r.optimizer},
                 {"smallest_budget_bytes", r.budget},
                 {"smallest_share", static_cast<double>(r.budget) / static_cast<double>(r.plain_peak)},
                 {"peak_bytes", r.peak},
                 {"plain_peak_bytes", r.plain_peak},
                 {"level_bytes", r.level},
                 {"largest_failed_bytes", r.largest_failed},
                 {"points", r.points},
                 {"bit_equal", r.bit_equal},
                 {"error", r.error}};
  out << row.dump() << std::endl;
}

void write_text(std::ostream& out, const SmallestReport& r) {
  out << r.model << ", optimizer " << r.optimizer << ", bytes above a level of " << format_bytes(r.level) << '\n';
  line(out, "plain peak", format_bytes(r.plain_peak));
  line(out, "smallest budget",
       std::to_string(r.budget) + " bytes, " + format_bytes(r.budget) + ", " + share_of(r.budget, r.plain_peak) +
           " of plain");
  line(out, "peak", format_bytes(r.peak) + "  (" + share_of(r.peak, r.budget) + " of the budget)");
  line(out, "failed at", share_of(r.largest_failed, r.plain_peak) + " of plain: " + r.error);
  line(out, "points", std::to_string(r.points));
  line(out, "bit-equal", yes(r.bit_equal));
}

}  // namespace reprise::benchmarks
