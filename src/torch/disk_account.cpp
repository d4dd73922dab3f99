#include "torch/disk_account.h"

#include <algorithm>
#include <span>
#include <vector>

#include "torch/clock.h"

namespace reprise::internal {

DiskAccount::DiskAccount(const SessionDisk& options, ValueFiles& files) : free_(options.eager) {
  if (options.bytes < largest_bytes) terms_.capacity = options.bytes;
  if (free_) {
    terms_.least = 1;
  } else {
    measure(files);
  }
}

// What a file costs shows with a small one, what a byte costs with a large one. The first one is not counted: it makes
// the tables of the file system, and ours.
void DiskAccount::measure(ValueFiles& files) {
  constexpr std::size_t large = 1 << 20, small = 4 << 10;
  constexpr int times = 3;
  const auto most = static_cast<std::size_t>(std::max<Bytes>(0, files.ledger().budget() - Disk::header_bytes));
  std::vector<std::byte> contents(std::min(large, most), std::byte{0x5a});
  if (contents.empty()) return;
  const auto measured = [&](std::size_t bytes, double& put, double& get) {
    for (int i = -1; i < times; ++i) {
      const double start = wall_microseconds();
      const auto file = files.write("measuring", std::span(contents).first(bytes), Reservation());
      const double written = wall_microseconds();
      file->read("measuring", std::span(contents).first(bytes));
      if (i < 0) continue;
      put += (written - start) / times;
      get += (wall_microseconds() - written) / times;
    }
  };
  double put = 0, get = 0;
  const std::size_t little = std::min(small, contents.size() / 2);
  measured(little, terms_.put_file, terms_.get_file);
  measured(contents.size(), put, get);
  const auto more = static_cast<double>(contents.size() - little);
  terms_.put_byte = std::max(0.0, put - terms_.put_file) / more;
  terms_.get_byte = std::max(0.0, get - terms_.get_file) / more;
}

void DiskAccount::put(std::size_t bytes, double microseconds) {
  totals_.put += static_cast<Bytes>(bytes);
  note(terms_.put_byte, terms_.put_file, bytes, microseconds);
}

void DiskAccount::got(std::size_t bytes, double microseconds) {
  totals_.got += static_cast<Bytes>(bytes);
  note(terms_.get_byte, terms_.get_file, bytes, microseconds);
}

void DiskAccount::failed(const std::string& why) {
  ++totals_.failures;
  totals_.last_failure = why;
}

// What a byte costs moves towards what it cost now, by how much was seen.
void DiskAccount::note(double& rate, double of_file, std::size_t bytes, double microseconds) {
  constexpr std::size_t enough_to_tell = 64 << 10;
  constexpr double memory_of_bytes = 64 << 20;
  totals_.seconds += microseconds * 1e-6;
  if (free_ || bytes < enough_to_tell) return;
  const double seen = std::max(0.0, microseconds - of_file) / static_cast<double>(bytes);
  rate += (seen - rate) * std::min(0.25, static_cast<double>(bytes) / memory_of_bytes);
}

}  // namespace reprise::internal
