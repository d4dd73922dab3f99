// Resident memory: how a process that runs only Reprise steps grows.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::benchmarks {

struct Growth {
  Bytes resident = 0;   // everything, pages of libraries that were used for the first time included
  Bytes anonymous = 0;  // without files: heap, stacks and what libraries map for themselves
};

// Watches this process from construction on: the most that was resident over what was resident then. The system
// remembers the most of all pages; of the anonymous ones it does not, so a thread looks every two milliseconds.
class ResidentWatch {
 public:
  ResidentWatch();
  ~ResidentWatch();
  [[nodiscard]] Growth growth() const;

 private:
  void look();

  Growth start_;
  std::atomic<Bytes> most_anonymous_;
  std::atomic<bool> stop_{false};
  std::thread watcher_;
};

// To stdout, for the parent.
void write_growth(const Growth&);

// Runs this program again with these arguments, which make it write its growth. None: it failed, and said why on
// stderr.
[[nodiscard]] std::optional<Growth> growth_of_child(const std::vector<std::string>& arguments);

}  // namespace reprise::benchmarks
