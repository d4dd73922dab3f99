// What a chain costs: nanoseconds for each closure call, a disk against memory, planning, and memory.
//
// Calls: closures that do nothing, the second of two passes, CPU time of the whole pass over all calls of closures.
// Disk: a chain with states in memory and on disk, against the same chain with the same steps and all of them in
// memory; in wall time, since the point is to hide the disk's time behind computing. A layer computes for as long as
// its state takes to be read. Both sides take turns; medians.
// Planning and memory: see chain_planning.h.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchmark_main.h"
#include "chain_planning.h"
#include "reprise/chain/chain.h"
#include "reprise/plan/hrevolve.h"
#include "reprise/trace/amount.h"

namespace reprise {
namespace benchmarks {
namespace {

struct Settings {
  int repetitions = 5;
  std::int64_t state_mebibytes = 16;
  int disk_layers = 48;
  std::string folder;
  bool json = false;
};

// A state of eight bytes that is not worth an allocation.
struct Small {
  double number = 0;
};

}  // namespace
}  // namespace benchmarks

template <>
struct StateTraits<benchmarks::Small> {
  static Bytes bytes(const benchmarks::Small&) { return sizeof(benchmarks::Small); }
};

namespace benchmarks {
namespace {

double median(std::vector<double> numbers) {
  std::nth_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2), numbers.end());
  return numbers[numbers.size() / 2];
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- calls ----

double nanoseconds_for_each_call(int layers, const SchedulePointer& schedule, int repetitions) {
  Chain<Small> chain(
      layers, [](int, const Small& x) { return x; }, [](int, const Small&, Small gradient) { return gradient; });
  chain.schedule(schedule);
  std::vector<double> results;
  for (int i = 0; i <= repetitions; ++i) {
    const double start = cpu_seconds();
    int passes = 0;
    std::uint64_t calls = 0;
    do {
      (void)chain.forward({1});
      chain.backward({1});
      calls += chain.statistics().forward_calls + chain.statistics().backward_calls;
    } while (i > 0 && ++passes * layers < 100'000);
    if (i > 0) results.push_back((cpu_seconds() - start) / static_cast<double>(calls) * 1e9);
  }
  return median(results);
}

void measure_calls(const Settings& settings, nlohmann::json& json) {
  const std::vector<int> sizes{1'000, 10'000, 100'000, 1'000'000};
  const std::vector<std::pair<const char*, SchedulePointer>> schedules{
      {"everything", schedule::everything()},
      {"every 4", schedule::every(4, std::nullopt)},
      {"20 slots", schedule::slots(20)},
      {"online, 20 slots", schedule::online(20)},
  };
  if (!settings.json) fmt::print("nanoseconds for each closure call\n{:18}", "layers");
  if (!settings.json)
    for (const int layers : sizes) fmt::print("{:>10}", layers);
  if (!settings.json) fmt::print("\n");
  for (const auto& [name, schedule] : schedules) {
    if (!settings.json) fmt::print("{:18}", name);
    for (const int layers : sizes) {
      const double result = nanoseconds_for_each_call(layers, schedule, settings.repetitions);
      json["nanoseconds_per_call"][name][std::to_string(layers)] = result;
      if (!settings.json) fmt::print("{:>10.1f}", result), std::fflush(stdout);
    }
    if (!settings.json) fmt::print("\n");
  }
}

// ---- disk ----

using Numbers = std::vector<float>;

// The schedule for memory and disk, with all that is for the disk on disk, or in memory as well.
class OneOrTheOther : public Schedule {
 public:
  OneOrTheOther(ChainSteps steps, bool disk) : steps_(std::move(steps)), disk_(disk) {
    if (disk) return;
    for (ChainStep& step : steps_) step.level = 0;
  }
  Plan plan(const ChainForm& form) const override { return plan_of_steps(form, steps_); }
  bool needs_disk() const override { return disk_; }

 private:
  ChainSteps steps_;
  const bool disk_;
};

// Slots in memory and on disk, where the disk costs as much as a layer.
ChainSteps some_on_disk(int layers) {
  return hrevolve_schedule({layers, {{3, 0, 0}, {layers / 4, 1, 1}}, 1, 1});
}

// Every state goes to disk once and comes back once; nothing is replayed.
ChainSteps all_on_disk(int layers) {
  ChainSteps steps;
  for (Id k = 1; k <= layers; ++k) {
    steps.push_back({ChainStep::Kind::store, k - 1, 1});
    steps.push_back({ChainStep::Kind::advance, k});
  }
  for (Id k = layers; k > 0; --k) {
    steps.push_back({ChainStep::Kind::load, k - 1, 1});
    steps.push_back({ChainStep::Kind::backward, k});
    steps.push_back({ChainStep::Kind::discard, k - 1, 1});
  }
  return steps;
}

// Does arithmetic for as long as `seconds` of it took when it was calibrated.
class Work {
 public:
  explicit Work(double seconds) {
    const double start = cpu_seconds();
    spin(20'000'000);
    rounds_ = static_cast<std::int64_t>(20'000'000 * seconds / (cpu_seconds() - start));
  }
  void operator()() { spin(rounds_); }

 private:
  void spin(std::int64_t rounds) {
    double x = sink_;
    for (std::int64_t i = 0; i < rounds; ++i) x = x * 0.999999 + 1e-9;
    sink_ = x;
  }
  std::int64_t rounds_ = 0;
  volatile double sink_ = 1;
};

double seconds_to_read(const std::filesystem::path& folder, const Numbers& state) {
  Store store({.memory = 0, .disk = DiskTier{.folder = folder}, .remember = remember::all()});
  store.put(0, state);
  std::vector<double> results;
  for (int i = 0; i < 7; ++i) {
    const double start = wall_seconds();
    const Numbers back = store.get(0).to_vector<float>();
    results.push_back(wall_seconds() - start);
  }
  return median(results);
}

void measure_disk(const Settings& settings, nlohmann::json& json) {
  const std::filesystem::path folder =
      settings.folder.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(settings.folder);
  const Numbers state(static_cast<std::size_t>(settings.state_mebibytes) * (1 << 20) / sizeof(float), 1.5f);
  const double read = seconds_to_read(folder, state);
  Work work(read);
  Chain<Numbers, int> chain(
      settings.disk_layers,
      [&](int, const Numbers& x) {
        work();
        return x;
      },
      [&](int, const Numbers&, int gradient) {
        work();
        return gradient;
      });
  chain.disk({.folder = folder});
  if (!settings.json) {
    fmt::print("\n{} layers with states of {} MiB, each computing for the {:.1f} ms that reading one takes\n",
               settings.disk_layers, settings.state_mebibytes, 1e3 * read);
  }
  for (const auto& [name, steps] : {std::pair{"some on disk", some_on_disk(settings.disk_layers)},
                                    {"all on disk", all_on_disk(settings.disk_layers)}}) {
    std::vector<double> on_disk, in_memory;
    ChainStatistics statistics;
    for (int i = 0; i <= settings.repetitions; ++i) {
      for (const bool disk : {true, false}) {
        chain.schedule(std::make_shared<OneOrTheOther>(steps, disk));
        const double start = wall_seconds();
        (void)chain.forward(state);
        chain.backward(0);
        if (i > 0) (disk ? on_disk : in_memory).push_back(wall_seconds() - start);
        if (disk) statistics = chain.statistics();
      }
    }
    const double ratio = median(on_disk) / median(in_memory);
    json["disk"][name] = {{"layers", settings.disk_layers},
                          {"state_bytes", state.size() * sizeof(float)},
                          {"read_seconds", read},
                          {"forward_calls", statistics.forward_calls},
                          {"peak_disk", statistics.peak_disk},
                          {"memory_seconds", median(in_memory)},
                          {"disk_seconds", median(on_disk)},
                          {"ratio", ratio}};
    if (settings.json) continue;
    fmt::print("  {:13} {} forward calls, {} on disk: in memory {:.3f} s, with the disk {:.3f} s, ratio {:.3f}{}\n",
               name, statistics.forward_calls, format_bytes(statistics.peak_disk), median(in_memory), median(on_disk),
               ratio, *name == 's' ? " (aim: at most 1.15)" : "");
  }
}

}  // namespace

int run(int argc, char** argv) {
  Settings settings;
  std::string only;
  CLI::App app("What a chain costs: nanoseconds for each closure call, a disk against memory, planning, and memory.");
  app.add_option("--repetitions", settings.repetitions, "of every measurement")->check(CLI::PositiveNumber);
  app.add_option("--only", only, "one of these: calls, disk, planning or memory")
      ->check(CLI::IsMember({"calls", "disk", "planning", "memory"}));
  app.add_option("--state", settings.state_mebibytes, "MiB of a state on disk")->check(CLI::PositiveNumber);
  app.add_option("--layers", settings.disk_layers, "of the chain with states on disk")->check(CLI::PositiveNumber);
  app.add_option("--folder", settings.folder, "for the states on disk; default: the folder for temporary files");
  app.add_flag("--json", settings.json, "one JSON object instead of text");
  CLI11_PARSE(app, argc, argv);
  nlohmann::json json;
  const auto wanted = [&](const char* what) { return only.empty() || only == what; };
  if (wanted("memory")) measure_memory(settings.json, json);  // first, while the process is small
  if (wanted("calls")) measure_calls(settings, json);
  if (wanted("disk")) measure_disk(settings, json);
  if (wanted("planning")) measure_planning(settings.repetitions, settings.json, json);
  if (settings.json) fmt::print("{}\n", json.dump());
  return 0;
}

}  // namespace benchmarks
}  // namespace reprise
