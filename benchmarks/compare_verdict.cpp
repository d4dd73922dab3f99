// The claims of the page, counted: where they hold and, one by one, where they do not.
#include <functional>

#include "compare_findings.h"

namespace reprise::benchmarks {
namespace {

struct Named {
  std::string model;
  double noise = 0;
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
  return named.finding.gain > named.noise;
}
bool needs_less(const Named& named) {
  return named.finding.needs_less;
}

std::string who(const Named& named) {
  return named.model + ", " + named.finding.rival->rival.label;
}

// One line for each rival at whose peak Reprise is not faster.
std::string slower_at_peak(const Claims& claims) {
  std::string text;
  for (const Named& named : claims.all) {
    const Finding& finding = named.finding;
    if (is_faster(named)) continue;
    text += "- not faster: " + who(named) + ", peak " + fixed(finding.share, 3) + ", takes " + fixed(finding.time, 3);
    if (finding.at_peak == nullptr) {
      text += "; Reprise kept no budget within that peak\n";
      continue;
    }
    text += "; Reprise " + fixed(finding.time - finding.gain, 3);
    text += -finding.gain <= named.noise ? ", which is within the noise of " + fixed(named.noise, 3) + "\n" : "\n";
  }
  return text;
}

std::string more_in_time(const Claims& claims) {
  std::string text;
  for (const Named& named : claims.all) {
    if (needs_less(named)) continue;
    text += "- not less: " + who(named) + ", peak " + fixed(named.finding.share, 3) + " in " +
            fixed(named.finding.time, 3) + "; no measured budget below that peak was as fast\n";
  }
  return text;
}

std::string exceptions(const Claims& claims) {
  const std::string lines = slower_at_peak(claims) + more_in_time(claims);
  return lines.empty() ? "" : "\n" + lines;
}

std::string about_right(const Claims& right) {
  if (right.all.empty()) return "";
  return "**At the peak of " + right.of_all(right.count(is_faster)) +
         " rivals with right results Reprise is faster** (at " + std::to_string(right.count(is_clearly_faster)) +
         " of them by more than the noise), **and in the time of " + right.of_all(right.count(needs_less)) +
         " it needs less.**\n" + exceptions(right) + "\n";
}

std::string about_wrong(const Claims& wrong) {
  if (wrong.all.empty()) return "";
  const int gradients =
      wrong.count([](const Named& named) { return named.finding.sound == Soundness::wrong_gradients; });
  return "**" + std::to_string(wrong.all.size()) +
         " rivals give wrong results**, without an error or a warning: " + std::to_string(gradients) +
         " have wrong gradients, " + std::to_string(static_cast<int>(wrong.all.size()) - gradients) +
         " leave BatchNorm's statistics in another state. Against these, Reprise is faster at the peak of " +
         wrong.of_all(wrong.count(is_faster)) + " and needs less in the time of " +
         wrong.of_all(wrong.count(needs_less)) + ".\n" + exceptions(wrong) + "\n";
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
      (is_wrong(finding.sound) ? wrong : right).all.push_back({model.model, noise_of(model), finding});
    }
  }
  return about_right(right) + about_wrong(wrong) + about_reprise(results);
}

}  // namespace reprise::benchmarks
