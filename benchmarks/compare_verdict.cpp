// The claims of the page, counted: where they hold and, one by one, where they do not.
#include <functional>

#include "compare_findings.h"

namespace reprise::benchmarks {
namespace {

struct Named {
  std::string model;
  Finding finding;
};

struct Claims {
  std::vector<Named> all;

  [[nodiscard]] int count(const std::function<bool(const Named&)>& holds) const {
    int number = 0;
    for (const Named& each : all) number += holds(each) ? 1 : 0;
    return number;
  }
  [[nodiscard]] std::string of_all(int number) const {
    return std::to_string(number) + " of " + std::to_string(all.size());
  }
};

bool is_faster(const Named& named) {
  return named.finding.gain > 0;
}
bool is_clearly_faster(const Named& named) {
  return is_faster(named) && named.finding.is_clear;
}
bool needs_less(const Named& named) {
  return named.finding.needs_less;
}

std::string failure_at_peak(const Named& named) {
  const Finding& finding = named.finding;
  if (finding.at_peak == nullptr) return "Reprise kept no budget within that peak";
  std::string text = "Reprise takes " + fixed(finding.time - finding.gain, 3) + " within that peak";
  if (!finding.is_clear) text += " (the quartiles overlap)";
  return text;
}

// One line for each rival against which a claim fails.
std::string exceptions(const Claims& claims) {
  std::string lines;
  for (const Named& named : claims.all) {
    if (is_faster(named) && needs_less(named)) continue;
    const Finding& finding = named.finding;
    lines += "\n- " + named.model + ", " + finding.rival->rival.label + ", peak " + fixed(finding.share, 3) +
             ", time " + fixed(finding.time, 3) + ": ";
    if (!is_faster(named)) lines += failure_at_peak(named);
    if (!is_faster(named) && !needs_less(named)) lines += ", and ";
    if (!needs_less(named)) lines += "it does not need less in that time";
    lines += ".";
  }
  return lines.empty() ? "" : " The exceptions:\n" + lines;
}

std::string about_right(const Claims& right) {
  if (right.all.empty()) return "";
  return "**At the peak of " + right.of_all(right.count(is_faster)) +
         " rivals with right results Reprise is faster** (at " + std::to_string(right.count(is_clearly_faster)) +
         " of them clearly), **and in the time of " + right.of_all(right.count(needs_less)) + " it needs less.**" +
         exceptions(right) + "\n\n";
}

std::string about_wrong(const Claims& wrong) {
  if (wrong.all.empty()) return "";
  const int gradients =
      wrong.count([](const Named& named) { return named.finding.sound == Soundness::wrong_gradients; });
  const int state = static_cast<int>(wrong.all.size()) - gradients;
  return "**Rivals with wrong results, without an error or a warning: " + std::to_string(wrong.all.size()) + "**, " +
         std::to_string(gradients) + " in their gradients, " + std::to_string(state) +
         " in BatchNorm's statistics. Reprise is faster at the peak of " + wrong.of_all(wrong.count(is_faster)) +
         " and needs less in the time of " + wrong.of_all(wrong.count(needs_less)) + "." + exceptions(wrong) + "\n\n";
}

std::string about_reprise(const Results& results) {
  int points = 0, broken = 0;
  for (const ModelResult& model : results.models) {
    for (const ReprisePoint& point : model.reprise) {
      if (point.measured.ratios.empty()) continue;
      ++points;
      broken += kept_its_promises(point) ? 0 : 1;
    }
  }
  if (broken == 0) {
    return "Reprise was measured at " + std::to_string(points) +
           " budgets. Every step was within its budget, and every bit of gradients and buffers was that of a plain "
           "step.\n";
  }
  return "**Of " + std::to_string(points) + " budgets Reprise broke " + std::to_string(broken) +
         ": a peak above the budget, or other bits than a plain step's. See the tables.**\n";
}

}  // namespace

std::string verdict(const Results& results) {
  Claims right, wrong;
  for (const ModelResult& model : results.models) {
    for (const Finding& finding : findings_of(model)) {
      (is_wrong(finding.sound) ? wrong : right).all.push_back({model.model, finding});
    }
  }
  return about_right(right) + about_wrong(wrong) + about_reprise(results);
}

}  // namespace reprise::benchmarks
