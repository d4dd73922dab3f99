// What ./bench live is asked for, and what it finds out.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "live_resident.h"
#include "reprise/report/summary.h"
#include "reprise/torch/session.h"
#include "training_figures.h"

namespace reprise::benchmarks {

struct LiveSettings {
  std::string model = "gpt";
  // A share of the plain peak ("0.5x") or bytes ("180MB"), both counted above the level: what is live at the start of a
  // step is not in it.
  std::string budget = "0.5x";
  std::string optimizer = "none";
  std::string device = "cpu";  // or "sim", the simulated accelerator of the tests
  std::int64_t region = 0;     // blocks in a region of the rival; 0: no rival
  int threads = 1;
  // Numbers too small for a normal float are computed as they are. They are a hundred times slower than others on some
  // processors: in backward of `lstm` they would be nine tenths of the time and hide everything else.
  bool denormals = false;
  int repetitions = 40;  // at most
  int steps = 0;         // one after the other in what is timed as one; 0: as many as take a tenth of a second
  SessionOptions session;

  int run = 0;  // the number of steps, as in a training, instead of repetitions; 0: not

  bool smallest = false;
  bool json = false;

  // Of one side only: plain, record or reprise; empty: the whole measurement.
  std::string only;
  int only_steps = 0;
  bool resident = false;  // with `only`: print by how much the process has grown in its steps
};

// The command: `argv[0]` is its name. Returns the exit code; what it throws is a mistake in the set-up.
int live(int argc, char** argv);

// The arguments of this program again, for a child that runs Reprise steps alone within `budget` bytes above the level.
[[nodiscard]] std::vector<std::string> arguments_of_child(const LiveSettings&, Bytes budget);

// All bytes are above the level.
struct LiveReport {
  // What is known before the first Reprise step.
  std::string model, optimizer, device;
  Bytes level = 0, plain_peak = 0, budget = 0;

  int repetitions = 0;
  int steps_per_sample = 1;
  Bytes level_growth = 0;  // of any step of any side since the first plain one: what a session holds between steps
  Plain plain;
  Measured reprise;  // after planning
  Measured first;    // the first step of a session, several sessions
  std::int64_t region_blocks = 0;
  std::optional<Measured> region;
  bool disk = false;                     // there is one
  std::optional<Measured> without_disk;  // with a disk: the same without it, if it keeps the budget
  Sample every_step;                     // of Reprise, ever run

  Summary summary;                                   // of the last step
  std::vector<double> replay_seconds, pack_seconds;  // of the measured steps
  bool followed_plan = true;                         // every measured step
  double planning_seconds = 0;                       // waited for plans, all in all
  std::optional<Growth> growth;                      // of a process that ran only Reprise steps

  // What no session may do.
  [[nodiscard]] bool broken() const { return !every_step.bit_equal() || every_step.peak > budget; }
};

// The result of --run.
struct RunReport {
  struct Time {
    double thread = 0, process = 0, wall = 0;  // CPU of the thread that trains; CPU of all threads; seconds
    void operator+=(const Time& other) {
      thread += other.thread;
      process += other.process;
      wall += other.wall;
    }
  };

  std::string model, optimizer;
  int steps = 0;
  Bytes level = 0, plain_peak = 0, budget = 0;  // the plain peak: of the largest step
  Bytes peak = 0;
  Time plain, reprise;  // of all steps
  bool bit_equal = true;
  int followed = 0;              // steps that followed a plan
  Summary summary;               // of the last step
  std::optional<Growth> growth;  // of a process that ran only Reprise steps

  [[nodiscard]] bool broken() const { return !bit_equal || peak > budget; }
  // What is known before the first Reprise step.
  [[nodiscard]] std::tuple<Bytes, Bytes, Bytes> ground() const { return {level, plain_peak, budget}; }
};

// The result of --smallest.
struct SmallestReport {
  std::string model, optimizer;
  Bytes level = 0;
  Bytes plain_peak = 0;
  Bytes budget = 0;          // the smallest that was kept
  Bytes peak = 0;            // of its steps
  Bytes largest_failed = 0;  // the largest below it that was not
  Bytes floor = 0;           // no plan for the trace of the last step can do with less
  std::string floor_set_by;
  int points = 0;
  std::string error;  // of the largest failed one
  bool bit_equal = true;
};

// Throw BudgetError if the budget cannot be kept; what was known by then is in the report.
void measure(const LiveSettings&, LiveReport&);
void run_only(const LiveSettings&, LiveReport&);  // --only
void measure_run(const LiveSettings&, RunReport&);

[[nodiscard]] SmallestReport find_smallest(const LiveSettings&);

void write_json(std::ostream&, const LiveReport&);
void write_text(std::ostream&, const LiveReport&);
void write_json(std::ostream&, const RunReport&);
void write_text(std::ostream&, const RunReport&);
void write_json(std::ostream&, const SmallestReport&);
void write_text(std::ostream&, const SmallestReport&);

}  // namespace reprise::benchmarks
