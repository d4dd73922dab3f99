// The account of a disk: what was written and read, how long that took, and what it says about the next file. Under
// the lock of whoever has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "reprise/torch/session.h"
#include "torch/tiers.h"
#include "torch/value_files.h"

namespace reprise::internal {

// All that was done so far.
struct DiskTotals {
  Bytes put = 0, got = 0;
  double seconds = 0;  // of writing and reading, whoever did it
  double waited = 0;   // of them, and of waiting for them, what others than the thread of the disk have spent
  std::int64_t failures = 0;
  std::string last_failure;
};

class DiskAccount {
 public:
  // Measures how fast the files are, with some that go at once. Throws DiskError.
  DiskAccount(const SessionDisk&, ValueFiles&);

  // So many bytes were written, or read.
  void put(std::size_t bytes, double microseconds);
  void got(std::size_t bytes, double microseconds);
  void waited(double microseconds) { totals_.waited += microseconds * 1e-6; }
  void failed(const std::string& why);

  [[nodiscard]] const DiskTerms& terms() const { return terms_; }
  [[nodiscard]] const DiskTotals& totals() const { return totals_; }

 private:
  void measure(ValueFiles&);
  void note(double& rate, double of_file, std::size_t bytes, double microseconds);

  const bool free_;  // whatever it costs
  DiskTerms terms_;
  DiskTotals totals_;
};

}  // namespace reprise::internal
