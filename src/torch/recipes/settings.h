// Settings of the process, or of its threads, that kernels look at and that change bits: with how many threads they
// compute, whether oneDNN does it, what becomes of denormal numbers, which algorithms are allowed. The program may have
// others in backward than in forward, so that a replay runs with those that the operator had.
#pragma once

#include <cstdint>

namespace reprise::internal {

class Settings {
 public:
  Settings() = default;  // of no thread
  [[nodiscard]] static Settings now();
  void put() const;
  // Returns these with the flags of the process from there; threads and denormals are each thread's own.
  [[nodiscard]] Settings with_process_of(const Settings&) const;
  bool operator==(const Settings&) const = default;

 private:
  std::uint16_t threads_ = 0;
  std::uint16_t flags_ = 0;
};

// They are in effect while it exists. Of several on different threads, the last one to end restores what the program
// had for the process.
class WithSettings {
 public:
  explicit WithSettings(Settings wanted);
  ~WithSettings();
  WithSettings(const WithSettings&) = delete;
  WithSettings& operator=(const WithSettings&) = delete;

 private:
  const Settings before_;
  const bool changed_;
};

}  // namespace reprise::internal
