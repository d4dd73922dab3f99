// Settings of the process, or of its threads, that kernels look at and that change bits: with how many threads they
// compute, whether oneDNN does it, what becomes of denormal numbers, which algorithms are allowed. The program may have
// others in backward than in forward, so that a replay runs with those that the operator had.
#pragma once

#include <cstdint>

namespace reprise::internal {

class Settings {
 public:
  Settings() = default;  // of nobody
  [[nodiscard]] static Settings now();
  void put() const;
  bool operator==(const Settings&) const = default;

 private:
  std::uint16_t threads_ = 0;
  std::uint16_t flags_ = 0;
};

// They are in effect while it exists.
class WithSettings {
 public:
  explicit WithSettings(Settings wanted) : before_(Settings::now()), changed_(wanted != before_) {
    if (changed_) wanted.put();
  }
  ~WithSettings() {
    if (changed_) before_.put();
  }
  WithSettings(const WithSettings&) = delete;
  WithSettings& operator=(const WithSettings&) = delete;

 private:
  const Settings before_;
  const bool changed_;
};

}  // namespace reprise::internal
