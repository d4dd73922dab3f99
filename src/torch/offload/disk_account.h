// The account of a disk: what was written and read, what that took, and what it says about the next file. Under the
// lock of whoever has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "reprise/report/summary.h"
#include "reprise/torch/session.h"
#include "torch/libtorch/clock.h"
#include "torch/offload/learnt_line.h"
#include "torch/offload/tiers.h"

namespace reprise::internal {

// All that was done so far.
struct DiskTotals {
  Bytes put = 0, got = 0;
  double seconds = 0;  // of writing and reading, whoever did it
  double waited = 0;   // of them, and of waiting for them, what others than the thread of the disk have spent
  std::int64_t failures = 0;
  std::string last_failure;

  // Of the last step, which began with `before`.
  void tell(Summary&, const DiskTotals& before) const;
};

// Microseconds: CPU time of the thread, and time.
struct Spent {
  double cpu = 0, time = 0;
};

// When something began on this thread.
struct Stamp {
  double cpu = 0, time = 0;

  [[nodiscard]] static Stamp now() { return {thread_microseconds(), wall_microseconds()}; }
  [[nodiscard]] Spent since() const { return {thread_microseconds() - cpu, wall_microseconds() - time}; }
  void operator+=(const Spent& spent) {
    cpu += spent.cpu;
    time += spent.time;
  }
};

class DiskAccount {
 public:
  enum class Work : std::uint8_t { put, get, remove };

  explicit DiskAccount(const DiskOffload&);

  // A file with so many bytes was written, read or removed.
  void done(Work, std::size_t bytes, const Spent&);
  // Somebody has asked for it, or waited for it.
  void called(Work, double cpu);
  void waited(double microseconds) { totals_.waited += microseconds * 1e-6; }
  void failed(const std::string& why);
  // What was learnt is not worth anything, or worth more than the totals: these begin anew.
  void reset();
  void reset_totals() { totals_ = {}; }

  // Whether there is anything to measure: files may be free.
  [[nodiscard]] bool measures() const { return !free_; }
  [[nodiscard]] const TierTerms& terms() const { return terms_; }
  [[nodiscard]] const DiskTotals& totals() const { return totals_; }

 private:
  struct Learnt {
    LearntLine cpu, time;
    int count = 0;
    double calls = 0;  // since the last of them
  };
  [[nodiscard]] TierWork& terms_of(Work);
  [[nodiscard]] double rate(Work) const;  // how much the next one counts

  const bool free_;  // whatever it costs
  TierTerms terms_;
  Learnt learnt_[3];
  DiskTotals totals_;
};

}  // namespace reprise::internal
