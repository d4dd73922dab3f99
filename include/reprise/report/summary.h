// A summary is the work of a session as plain data. `operator<<` prints it for people.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "reprise/export.h"
#include "reprise/trace/trace.h"

namespace reprise {

// An operator whose results are kept because they cannot be recomputed, or a mechanism that keeps what is saved.
struct KeptOperator {
  std::string op;  // or "saved_tensors_hooks", "torch.compile", "saved tensors that are not plain"
  std::string why;
  std::int64_t values = 0;  // in the last step
  Bytes bytes = 0;
};

// A step that left the trace it followed.
struct Divergence {
  std::int64_t step = 0;  // counted from 1
  std::string why;        // a sentence: the operator, what was expected and what came
};

// Something that failed and that the session went on without: a copy on disk that is lost, a policy that throws, a plan
// that could not be made, executed or written to its folder.
struct Note {
  std::int64_t step = 0;  // counted from 1
  std::string what;       // a sentence
};

// Bytes of LibTorch's allocator for one device of a session.
struct DeviceSummary {
  std::string device = "cpu";   // as LibTorch calls it
  std::optional<Bytes> budget;  // of the next step; empty: no limit
  Bytes live = 0;               // now
  Bytes peak_last_step = 0;     // the most that was live in the last step
  Bytes peak = 0;               // in any step
  Bytes evicted_last_step = 0;  // bytes of values that were evicted, each time
};

struct REPRISE_EXPORT Summary {
  std::string name;        // of the session
  std::int64_t steps = 0;  // closed steps, whether they were recorded or not

  // Every device whose bytes are counted and limited, at least one. Plans, traces and what follows are about the first.
  std::vector<DeviceSummary> devices = std::vector<DeviceSummary>(1);
  // Return the numbers of the first device.
  [[nodiscard]] std::optional<Bytes> budget() const { return devices.front().budget; }
  [[nodiscard]] Bytes live() const { return devices.front().live; }
  [[nodiscard]] Bytes peak_last_step() const { return devices.front().peak_last_step; }
  [[nodiscard]] Bytes peak() const { return devices.front().peak; }
  // Returns the bytes of values that were evicted on all devices, each time.
  [[nodiscard]] Bytes evicted_last_step() const;

  // ---- bytes ----
  // The peak of the last step if nothing had been evicted, with the other bytes that were seen in that step; a lower
  // bound where regions of `checkpoint` are recorded by themselves. Empty: no complete trace yet.
  std::optional<Bytes> peak_if_kept;
  Bytes packed_last_step = 0;     // bytes of values that were packed, before packing
  Bytes packed_to_last_step = 0;  // bytes of these values after packing
  Bytes disk_put_last_step = 0;   // bytes of values that were written to the session's disk
  Bytes disk_got_last_step = 0;   // bytes of values that were read from there
  Bytes host_put_last_step = 0;   // bytes of values of an accelerator that were copied to memory of the host
  Bytes host_got_last_step = 0;   // bytes of values that were copied back
  Bytes host_peak = 0;            // the most bytes that were there, in all steps
  Bytes other_devices = 0;  // of values saved by autograd on other devices in the last step: kept, not in the budget
  // Bytes of the CPU that were allocated before the meter was installed, as far as steps have met them: not in the
  // budget. On an accelerator such bytes are in the budget.
  Bytes before_meter = 0;
  Bytes resident = 0;  // of the whole process, as the system sees it, now

  // ---- work of the last step: CPU seconds, on an accelerator seconds of the device as far as they are known ----
  std::int64_t replays = 0;              // operators that were run again
  std::int64_t replays_beside_plan = 0;  // of them, those that no plan asked for
  double replay_seconds = 0;
  double pack_seconds = 0;       // packing and unpacking
  double disk_seconds = 0;       // wall time of writing and reading files, mostly overlapped with the step
  double disk_wait_seconds = 0;  // of that time, what the step spent itself or waited for
  double step_seconds = 0;       // of the step's thread, everything included; on an accelerator forward and backward
  // Estimates replaying, packing and waiting for the disk as a share of the rest of the step; 0 if nothing was
  // measured.
  [[nodiscard]] double overhead() const;

  // ---- the plan ----
  std::int64_t traces = 0;            // different ones met so far
  std::int64_t plans = 0;             // of them, those with a plan for the present budget
  bool planning = false;              // true while planning is under way
  double planning_seconds = 0;        // CPU time of all planning, not in `step_seconds`
  double planning_saved_seconds = 0;  // estimated: replaying and packing that plans spared all steps with one
  bool followed_plan = false;         // true if the last step did, from its first to its last operator
  // Of the plan the last step followed, or else the newest one; more than it was made for, where the other bytes of the
  // step have outgrown it.
  std::optional<Bytes> promised_peak;
  std::optional<double> promised_overhead;  // its added cost as a share of the step
  std::optional<double> gap;                // how far above the least possible cost the plan can be at most, as a share
  std::optional<Bytes>
      smallest_feasible;  // the smallest budget with a proven plan, if planning found none for this one
  std::int64_t divergences = 0;
  std::vector<Divergence> last_divergences;  // the newest ten, in the order they came

  std::int64_t notes = 0;
  std::vector<Note> last_notes;  // the newest ten, in the order they came

  // ---- the disk ----
  std::int64_t disk_failures = 0;  // files that could not be written or read, in all steps; values were recomputed
  std::string last_disk_failure;   // why; empty: there was none

  // ---- exactness ----
  std::int64_t verified = 0;       // values compared bit for bit, in all steps
  std::vector<KeptOperator> kept;  // kept because they cannot be recomputed, largest first
};

// Returns a few lines for people, without the fields that have nothing to report, and with a line break at the end.
[[nodiscard]] REPRISE_EXPORT std::string to_text(const Summary&);
REPRISE_EXPORT std::ostream& operator<<(std::ostream&, const Summary&);

// Returns one JSON object on one line for programs (see report/json.h). Keys are the members' names, with _bytes behind
// those that are bytes, `overhead`, and the numbers of the first device; an empty member is null.
[[nodiscard]] REPRISE_EXPORT std::string json_line(const Summary&);

}  // namespace reprise
