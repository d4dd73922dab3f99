// Steps of one side and nothing else: for counting instructions, and for the child that is watched growing.
#include <optional>

#include "live_measure.h"
#include "live_resident.h"
#include "live_sides.h"
#include "live_training.h"
#include "torch/meter.h"

namespace reprise::benchmarks {
using namespace internal;
namespace {

// A share needs the plain peak, and that a plain step. Bytes do not: then the side is really alone.
Ground ground_of(const Settings& settings, Training& training) {
  Ground ground;
  ground.level = meter::live();
  if (settings.only != "reprise") return ground;
  if (settings.budget.ends_with("x") || settings.budget.ends_with("X")) {
    const StepResult plain = training.plain();
    ground.level = plain.level;
    ground.plain_peak = plain.peak - plain.level;
  }
  ground.budget = asked_budget(settings, ground.plain_peak);
  return ground;
}

}  // namespace

void run_only(const Settings& settings) {
  Training training(settings.model, settings.optimizer);
  const Ground ground = ground_of(settings, training);
  std::optional<ResidentWatch> watch;
  if (settings.resident) {
    meter::give_back();
    watch.emplace();
  }
  std::optional<Session> session;
  if (settings.only != "plain") {
    SessionOptions options = settings.session;
    options.budget = settings.only == "record" ? no_limit : ground.level + ground.budget;
    session.emplace(options);
  }
  for (int i = 0; i < settings.only_steps; ++i) {
    if (!session) {
      training.plain();
      continue;
    }
    try {
      training.reprise(*session);
    } catch (const BudgetError& error) {
      throw NotKept(error, ground);
    }
    session->wait_for_plan();
  }
  if (watch) write_growth(watch->growth());
}

}  // namespace reprise::benchmarks
