// What a session's disk is made of: what the options say, and what a test puts in the place of the machine.
#pragma once

#include <filesystem>
#include <utility>

#include "reprise/torch/session.h"

namespace reprise {
class FileSystem;
}

namespace reprise::internal {

struct DiskSettings {
  std::filesystem::path folder = {};
  Bytes bytes = largest_bytes;
  FileSystem* files = nullptr;  // null: the machine's
  bool eager = false;           // true: files are taken for free, so that every value goes there that would be evicted
};

// While one of these lives, sessions that are made have disks with these files. For tests, on one thread.
class DiskOfTest {
 public:
  explicit DiskOfTest(FileSystem* files, bool eager = false)
      : before_(std::exchange(now_, this)), files_(files), eager_(eager) {}
  ~DiskOfTest() { now_ = before_; }
  DiskOfTest(const DiskOfTest&) = delete;
  DiskOfTest& operator=(const DiskOfTest&) = delete;

  // Returns the settings of a disk with these options.
  [[nodiscard]] static DiskSettings settings(const DiskOffload& options) {
    return {.folder = options.folder,
            .bytes = options.bytes,
            .files = now_ ? now_->files_ : nullptr,
            .eager = now_ && now_->eager_};
  }

 private:
  static inline constinit DiskOfTest* now_ = nullptr;
  DiskOfTest* const before_;
  FileSystem* const files_;
  const bool eager_;
};

}  // namespace reprise::internal
