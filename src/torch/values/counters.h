// Counters: the numbers of a session's summary that are counted while its steps run. Under the arbiter's lock.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "reprise/report/summary.h"
#include "torch/recipes/recipes.h"

namespace reprise::internal {

class Counters {
 public:
  Counters(std::string name_of_session, std::size_t devices);

  void step_begins();
  // `peaks` by device.
  void step_ends(double seconds, std::span<const Bytes> peaks, bool followed_plan);

  // Also at none of the devices that are counted.
  void evicted(DeviceOrdinal, Bytes);
  // A region that is recorded by itself has ended. At the first device `gone` bytes of it are, and `live` are live.
  void region_ends(Bytes gone, Bytes live);
  void packed(Bytes plain, Bytes packed);
  void packing(double microseconds);
  // For values from disk.
  void waiting(double microseconds) { recomputing_ += microseconds * 1e-6; }
  void replays(std::int64_t operators, double microseconds);
  // Counts this many of those replays as asked for by a plan.
  void replays_of_plan(std::int64_t operators) { numbers_.replays_beside_plan -= operators; }
  void verified() { ++numbers_.verified; }
  // A result of this operator cannot be recomputed.
  void kept(const Recipe&, Bytes);
  // What something else than an operator made, or saved, cannot be evicted.
  void kept(const std::string& what, const char* why, Bytes);
  // Raises what is kept under this name to at least these bytes: holders that take turns are no sum.
  void held(const std::string& what, const char* why, Bytes);
  void diverged(const std::string& why);
  // Something failed, and the session goes on without it.
  void note(const std::string& what);
  void trace_is_new() { ++numbers_.traces; }
  void on_other_device(Bytes bytes) { numbers_.other_devices += bytes; }
  // Memory that the meter does not know.
  void unmetered(Bytes bytes, const void* storage) { unmetered_[storage] = bytes; }

  // Seconds of replaying, packing and waiting for a disk, in all steps.
  [[nodiscard]] double recomputing() const { return recomputing_; }

  // All that was counted; what others know is left as it is by default.
  [[nodiscard]] Summary summary() const;

 private:
  Summary numbers_;
  double recomputing_ = 0;
  Bytes gone_in_regions_ = 0;  // in the step
  std::map<std::string, KeptOperator> kept_;
  std::unordered_map<const void*, Bytes> unmetered_;
};

}  // namespace reprise::internal
