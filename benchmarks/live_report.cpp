#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "bench_live.h"
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

std::string range(const Measured& measured) {
  const Spread spread = spread_of(measured.ratios);
  return fixed(spread.median, 3) + "  [" + fixed(spread.low, 3) + ", " + fixed(spread.high, 3) + "]";
}

void line(std::ostream& out, const char* label, const std::string& value) {
  out << "  " << std::left << std::setw(18) << label << value << '\n';
}

// `name` and `prefix`_low and `prefix`_high.
void add_spread(Json& row, const std::string& name, const std::string& prefix, const Measured& measured) {
  const Spread spread = spread_of(measured.ratios);
  row[name] = rounded(spread.median);
  row[prefix + "_low"] = rounded(spread.low);
  row[prefix + "_high"] = rounded(spread.high);
}

double plain_seconds(const LiveReport& report) {
  return spread_of(report.plain.seconds).median / report.steps_per_sample;
}

std::optional<Bytes> promised_peak(const LiveReport& report) {
  if (!report.summary.promised_peak) return std::nullopt;
  return *report.summary.promised_peak - report.level;
}

std::string yes(bool value) {
  return value ? "yes" : "NO";
}

}  // namespace

void write_json(std::ostream& out, const LiveReport& r) {
  const Summary& last = r.summary;
  Json row{{"model", r.model},
           {"optimizer", r.optimizer},
           {"device", r.device},
           {"budget_bytes", r.budget},
           {"peak_bytes", r.every_step.peak},
           {"plain_peak_bytes", r.plain_peak},
           {"level_bytes", r.level},
           {"level_growth_bytes", r.level_growth}};
  add_spread(row, "ratio", "ratio", r.reprise);
  add_spread(row, "plain_again_ratio", "plain_again", r.plain.again);
  row.update({{"repetitions", r.repetitions},
              {"steps_per_sample", r.steps_per_sample},
              {"plain_seconds", rounded(plain_seconds(r), 6)},
              {"first_step_ratio", rounded(spread_of(r.first.ratios).median)},
              {"replays", last.replays},
              {"replay_seconds", rounded(spread_of(r.replay_seconds).median, 6)},
              {"pack_seconds", rounded(spread_of(r.pack_seconds).median, 6)},
              {"evicted_bytes", last.evicted_last_step()},
              {"packed_bytes", last.packed_last_step},
              {"promised_peak_bytes", or_null(promised_peak(r))},
              {"promised_overhead", or_null(last.promised_overhead)},
              {"followed_plan", r.followed_plan},
              {"gap", or_null(last.gap)},
              {"planning_seconds", rounded(r.planning_seconds, 3)},
              {"bit_equal", r.every_step.bit_equal()},
              {"verified", last.verified},
              {"divergences", last.divergences},
              {"rss_growth_bytes", r.growth ? Json(r.growth->resident) : Json(nullptr)},
              {"rss_anonymous_growth_bytes", r.growth ? Json(r.growth->anonymous) : Json(nullptr)}});
  if (r.disk) {
    row["disk_put_bytes"] = last.disk_put_last_step;
    row["disk_got_bytes"] = last.disk_got_last_step;
    row["disk_seconds"] = rounded(last.disk_seconds, 6);
    row["disk_wait_seconds"] = rounded(last.disk_wait_seconds, 6);
  }
  row["wall_ratio"] = rounded(spread_of(r.reprise.wall).median);
  if (r.without_disk) {
    add_spread(row, "without_disk_ratio", "without_disk", *r.without_disk);
    row["without_disk_wall_ratio"] = rounded(spread_of(r.without_disk->wall).median);
  }
  if (r.region) {
    row["region_blocks"] = r.region_blocks;
    add_spread(row, "region_ratio", "region_ratio", *r.region);
    row["region_peak_bytes"] = r.region->steps.peak;
    row["region_gradients_equal"] = !r.region->steps.gradient_error;
    row["region_buffers_equal"] = r.region->steps.buffers_equal;
  }
  out << row.dump() << std::endl;
}

void write_text(std::ostream& out, const LiveReport& r) {
  const Summary& last = r.summary;
  const auto bytes = [&](Bytes b) { return format_bytes(b) + "  (" + share_of(b, r.plain_peak) + " of plain)"; };
  const std::string time = r.device == "cpu" ? " s of CPU a step" : " s of the device a step";
  out << r.model << " on " << r.device << ", optimizer " << r.optimizer << ", bytes above a level of "
      << format_bytes(r.level) << '\n';
  line(out, "plain peak", format_bytes(r.plain_peak) + ", " + fixed(plain_seconds(r), 4) + time);
  line(out, "budget", bytes(r.budget));
  line(out, "peak",
       format_bytes(r.every_step.peak) + "  (" + share_of(r.every_step.peak, r.budget) + " of the budget)");
  line(out, "promised peak", last.promised_peak ? bytes(*promised_peak(r)) : "no plan");
  line(out, "bit-equal", yes(r.every_step.bit_equal()));
  line(out, "ratio",
       range(r.reprise) + " in " + std::to_string(r.repetitions) + " repetitions of " +
           std::to_string(r.steps_per_sample) + " step(s)");
  line(out, "ratio of time", fixed(spread_of(r.reprise.wall).median, 3));
  if (r.without_disk) {
    line(out, "without the disk",
         range(*r.without_disk) + ", of time " + fixed(spread_of(r.without_disk->wall).median, 3));
  }
  line(out, "plain again", range(r.plain.again));
  line(out, "first step", range(r.first));
  line(out, "replays",
       std::to_string(last.replays) + " in " + fixed(spread_of(r.replay_seconds).median, 4) + " s, packing " +
           fixed(spread_of(r.pack_seconds).median, 4) + " s");
  if (r.disk) {
    line(out, "disk",
         format_bytes(last.disk_put_last_step) + " put, " + format_bytes(last.disk_got_last_step) + " got in " +
             fixed(last.disk_seconds, 4) + " s, of it waited " + fixed(last.disk_wait_seconds, 4) + " s");
  }
  line(out, "followed a plan",
       yes(r.followed_plan) + ", " + std::to_string(last.divergences) + " divergences, " +
           fixed(r.planning_seconds, 1) + " s of waiting for plans" +
           (last.gap ? ", gap " + fixed(100 * *last.gap, 2) + " %" : ""));
  line(out, "verified", std::to_string(last.verified) + " values");
  if (r.level_growth != 0) line(out, "level grew by", format_bytes(r.level_growth));
  if (r.growth) {
    line(out, "resident growth",
         format_bytes(r.growth->resident) + ", of it anonymous " + format_bytes(r.growth->anonymous));
  }
  if (!r.region) return;
  out << "regions of " << r.region_blocks << " block(s), re-run as a whole\n";
  line(out, "ratio", range(*r.region));
  line(out, "peak", bytes(r.region->steps.peak));
  line(out, "bit-equal",
       "gradients " + yes(!r.region->steps.gradient_error) + ", buffers " + yes(r.region->steps.buffers_equal));
}

void write_json(std::ostream& out, const RunReport& r) {
  const Json row{{"model", r.model},
                 {"optimizer", r.optimizer},
                 {"steps", r.steps},
                 {"budget_bytes", r.budget},
                 {"peak_bytes", r.peak},
                 {"plain_peak_bytes", r.plain_peak},
                 {"level_bytes", r.level},
                 {"bit_equal", r.bit_equal},
                 {"plain_seconds", rounded(r.plain.thread, 3)},
                 {"thread_ratio", rounded(r.reprise.thread / r.plain.thread)},
                 {"process_ratio", rounded(r.reprise.process / r.plain.process)},
                 {"wall_ratio", rounded(r.reprise.wall / r.plain.wall)},
                 {"rss_growth_bytes", r.growth ? Json(r.growth->resident) : Json(nullptr)},
                 {"rss_anonymous_growth_bytes", r.growth ? Json(r.growth->anonymous) : Json(nullptr)},
                 {"traces", r.summary.traces},
                 {"followed", r.followed},
                 {"planning_seconds", rounded(r.summary.planning_seconds, 3)},
                 {"planning_saved_seconds", rounded(r.summary.planning_saved_seconds, 3)}};
  out << row.dump() << std::endl;
}

void write_text(std::ostream& out, const RunReport& r) {
  out << r.model << ", optimizer " << r.optimizer << ", " << r.steps << " steps, bytes above a level of "
      << format_bytes(r.level) << '\n';
  line(out, "plain peak", format_bytes(r.plain_peak) + ", " + fixed(r.plain.thread / r.steps, 4) + " s of CPU a step");
  line(out, "budget", format_bytes(r.budget) + "  (" + share_of(r.budget, r.plain_peak) + " of plain)");
  line(out, "peak", format_bytes(r.peak) + "  (" + share_of(r.peak, r.budget) + " of the budget)");
  line(out, "bit-equal", yes(r.bit_equal));
  line(out, "CPU of the thread", fixed(r.reprise.thread / r.plain.thread, 3) + " of plain");
  line(out, "CPU of the process", fixed(r.reprise.process / r.plain.process, 3) + " of plain");
  line(out, "wall time", fixed(r.reprise.wall / r.plain.wall, 3) + " of plain");
  if (r.growth) {
    line(out, "resident growth",
         format_bytes(r.growth->resident) + "  (" + share_of(r.growth->resident, r.budget) +
             " of the budget), of it anonymous " + format_bytes(r.growth->anonymous));
  }
  line(out, "traces", std::to_string(r.summary.traces) + ", " + std::to_string(r.followed) + " steps followed a plan");
  line(out, "planning",
       fixed(r.summary.planning_seconds, 2) + " s of CPU, saved about " + fixed(r.summary.planning_saved_seconds, 2) +
           " s");
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
                 {"floor_bytes", r.floor},
                 {"floor_set_by", r.floor_set_by},
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
  line(out, "floor", format_bytes(r.floor) + ", " + share_of(r.floor, r.plain_peak) + " of plain");
  line(out, "set by", r.floor_set_by);
  line(out, "failed at", share_of(r.largest_failed, r.plain_peak) + " of plain: " + r.error);
  line(out, "points", std::to_string(r.points));
  line(out, "bit-equal", yes(r.bit_equal));
}

}  // namespace reprise::benchmarks
