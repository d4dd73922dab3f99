// Trains a model within a byte budget: CPU time, peak, and every bit against plain steps in the same run.
//
// Exit codes: 0 done; 1 a promise was broken (bits differ, or the peak passed the budget); 2 a mistake in the call or
// in the set-up; 3 the budget cannot be kept.
#include <torch/torch.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "live_measure.h"
#include "live_settings.h"
#include "torch/meter.h"

namespace reprise::benchmarks {
using namespace internal;
namespace {

void tell(const Settings& settings, const NotKept& error) {
  std::cerr << "[bench live] the budget of " << error.ground.budget << " bytes above the level of "
            << error.ground.level << " cannot be kept: " << error.what() << '\n';
  if (!settings.json) return;
  nlohmann::ordered_json row{{"model", settings.model},
                             {"budget_bytes", error.ground.budget},
                             {"plain_peak_bytes", error.ground.plain_peak},
                             {"error", error.what()}};
  if (const auto smallest = error.facts().smallest_feasible) {
    row["smallest_feasible_bytes"] = *smallest - error.ground.level;
  }
  std::cout << row.dump() << std::endl;
}

template <typename AnyReport>
void write(const Settings& settings, const AnyReport& report) {
  settings.json ? write_json(std::cout, report) : write_text(std::cout, report);
}

int run(const Settings& settings) {
  meter::keep_heap();  // before anything: both sides have the same heap
  at::set_num_threads(settings.threads);
  at::globalContext().setFlushDenormal(!settings.denormals);
  if (!settings.only.empty()) {
    run_only(settings);
    return 0;
  }
  if (settings.smallest) {
    const SmallestReport report = find_smallest(settings);
    write(settings, report);
    return report.bit_equal ? 0 : 1;
  }
  meter::keep_all_pages();  // or a plain step pays for the pages that the limit of the step before gave back
  const Report report = measure(settings);
  write(settings, report);
  return report.broken() ? 1 : 0;
}

}  // namespace
}  // namespace reprise::benchmarks

int main(int argc, char** argv) {
  using namespace reprise::benchmarks;
  const Parsed parsed = parse_settings(argc, argv);
  if (!parsed.run) return parsed.status;
  try {
    return run(parsed.settings);
  } catch (const NotKept& error) {
    tell(parsed.settings, error);
    return 3;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
