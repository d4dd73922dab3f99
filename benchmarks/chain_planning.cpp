#include "chain_planning.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "reprise/chain/chain.h"
#include "reprise/plan/hrevolve.h"
#include "reprise/plan/planner.h"

namespace reprise::benchmarks {
namespace {

using Numbers = std::vector<double>;

template <class Work>
double median_seconds(int repetitions, const Work& work) {
  std::vector<double> results;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    results.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(results.size() / 2), results.end());
  return results[results.size() / 2];
}

ChainForm random_form(Id layers) {
  std::mt19937_64 random(1);
  ChainForm form = equal_layers(layers);
  for (ChainLayerForm& layer : form.layers) {
    layer.state = static_cast<Bytes>(1000 + random() % 9000);
    layer.forward_cost = layer.backward_cost = 1 + static_cast<double>(random() % 1000) / 100;
  }
  form.input = 5000;
  return form;
}

double first_pass(int layers, double limit, int repetitions) {
  const ChainForm form = random_form(layers);
  const Bytes budget = keep_everything(chain_trace(form)).budget / 4;
  return median_seconds(repetitions, [&] {
    Chain<Numbers, int> chain(
        layers, [](int, const Numbers& x) { return x; }, [](int, const Numbers&, int gradient) { return gradient; });
    chain.sizes(form);
    chain.schedule(schedule::budget(budget, std::chrono::duration<double>(limit)));
    (void)chain.forward(Numbers(100));
  });
}

// Peak resident kilobytes that the work adds, in a process of its own.
template <class Work>
long added_kilobytes(const Work& work) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    const auto peak = [] {
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      return usage.ru_maxrss;
    };
    const long before = peak();
    work();
    const long added = peak() - before;
    _exit(write(ends[1], &added, sizeof added) == sizeof added ? 0 : 1);
  }
  close(ends[1]);
  long added = -1;
  if (read(ends[0], &added, sizeof added) != sizeof added) added = -1;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return added;
}

}  // namespace

void measure_planning(int repetitions, bool quiet, nlohmann::json& json) {
  if (!quiet) fmt::print("\nplanning\n");
  for (const int layers : {300, 1'000}) {
    for (const double limit : {0.1, 1.0}) {
      const double took = first_pass(layers, limit, repetitions);
      json["planning"]["first_pass"].push_back({{"layers", layers}, {"limit", limit}, {"seconds", took}});
      if (quiet) continue;
      fmt::print("  budget, {} layers, limit {} s: {:.3f} s, ratio {:.2f} (aim: at most 1.1)\n", layers, limit, took,
                 took / limit);
    }
  }
  const Trace trace = chain_trace(random_form(1'000));
  PlanOptions options{.budget = keep_everything(trace).budget / 4, .planner = "chain", .bounds = false};
  double ratio = 0;
  const double programme = median_seconds(repetitions, [&] { ratio = make_plan(trace, options).cost_ratio(); });
  const double hrevolve = median_seconds(repetitions, [] {
    (void)hrevolve_schedule({100'000, {{20, 0, 0}, {200, 10, 10}}, 1, 1});
  });
  json["planning"]["chain_programme"] = {{"layers", 1'000}, {"seconds", programme}, {"cost_ratio", ratio}};
  json["planning"]["hrevolve"] = {{"layers", 100'000}, {"seconds", hrevolve}};
  if (quiet) return;
  fmt::print("  chain programme, 1000 layers: {:.2f} s, cost ratio {:.4f} (aim: at most 2 s)\n", programme, ratio);
  fmt::print("  H-Revolve, 100000 layers, 20 slots in memory and 200 on disk: {:.2f} s (aim: at most 2 s)\n", hrevolve);
}

void measure_memory(bool quiet, nlohmann::json& json) {
  if (!quiet) fmt::print("\nmemory that a pass with 20 slots adds, states of 8 bytes included\n");
  const auto measure = [&](int layers, int aim, const char* name, const SchedulePointer& schedule, bool coded) {
    const long kilobytes = added_kilobytes([&] {
      Chain<Numbers> chain(
          layers, [](int, const Numbers& x) { return x; },
          [](int, const Numbers&, Numbers gradient) { return gradient; });
      chain.schedule(schedule);
      if (coded) chain.codec(codec("half"));
      (void)chain.forward({1});
      chain.backward({1});
    });
    json["memory"].push_back({{"layers", layers}, {"schedule", name}, {"kilobytes", kilobytes}});
    if (quiet) return;
    fmt::print("  {} layers, {}: {:.1f} MB (aim: at most {})\n", layers, name, static_cast<double>(kilobytes) / 1024,
               aim);
  };
  for (const auto& [layers, aim] : {std::pair{1'000'000, 30}, {10'000'000, 100}}) {
    measure(layers, aim, "slots", schedule::slots(20), false);
    measure(layers, aim, "online", schedule::online(20), false);
  }
  measure(1'000'000, 30, "slots, half", schedule::slots(20), true);
}

}  // namespace reprise::benchmarks
