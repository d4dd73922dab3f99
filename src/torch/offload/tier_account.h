// The account of a tier: what was put and got, what that took, and what it says about the next transfer. Under the lock
// of the tier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "torch/libtorch/clock.h"
#include "torch/offload/tier_costs.h"

namespace reprise::internal {

// All that was done so far.
struct TierTotals {
  Bytes put = 0, got = 0;
  Bytes peak = 0;      // of the bytes there
  double seconds = 0;  // of writing and reading, whoever did it
  double waited = 0;   // of them, and of waiting for them, what others than the thread of the tier have spent
  std::int64_t failures = 0;
  std::string last_failure;
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

class TierAccount {
 public:
  enum class Work : std::uint8_t { put, get, remove };
  enum class Learns : std::uint8_t {
    nothing,          // transfers are free, whatever they cost
    time_of_streams,  // the device does them, and says later how long they took
    all,              // a thread does them
  };

  TierAccount(TierCosts, Learns);

  // Counts a transfer that somebody has done, and learns from what it took.
  void done(Work, std::size_t bytes, const Spent&);
  // Learns from how long a stream was busy with a transfer.
  void took(Work, std::size_t bytes, double microseconds);
  // Adds CPU time of those who asked for a transfer, or waited for it.
  void called(Work, double cpu);
  void waited(double microseconds) { totals_.waited += microseconds * 1e-6; }
  void failed(const std::string& why);
  // Forgets what was learnt, and the totals.
  void reset();
  void reset_totals() { totals_ = {}; }

  [[nodiscard]] const TierCosts& costs() const { return costs_; }
  [[nodiscard]] const TierTotals& totals() const { return totals_; }

 private:
  struct Learnt {
    LinearCostEstimator cpu, time;
    int count = 0;
    double calls = 0;  // since the last of them
  };
  [[nodiscard]] Learnt& learnt(Work work) { return learnt_[static_cast<int>(work)]; }
  [[nodiscard]] TransferCost& cost_of(Work);
  [[nodiscard]] double rate(Work);  // how much the next one counts

  const Learns learns_;
  TierCosts costs_;
  Learnt learnt_[3];
  TierTotals totals_;
};

}  // namespace reprise::internal
