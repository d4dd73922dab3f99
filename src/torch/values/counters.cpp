#include "torch/values/counters.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {
namespace {

constexpr std::size_t most_listed = 10;

template <class Entry>
void add_newest(std::vector<Entry>& newest, Entry entry) {
  if (newest.size() == most_listed) newest.erase(newest.begin());
  newest.push_back(std::move(entry));
}

}  // namespace

Counters::Counters(std::string name_of_session, std::size_t devices) {
  numbers_.name = std::move(name_of_session);
  numbers_.devices.resize(std::max<std::size_t>(devices, 1));
}

void Counters::step_begins() {
  for (DeviceSummary& device : numbers_.devices) device.evicted_last_step = 0;
  kept_.clear();
  unmetered_.clear();
  numbers_.packed_last_step = numbers_.packed_to_last_step = 0;
  numbers_.peak_if_kept.reset();
  gone_in_regions_ = 0;
  numbers_.other_devices = 0;
  numbers_.replays = numbers_.replays_beside_plan = 0;
  numbers_.replay_seconds = numbers_.pack_seconds = 0;
}

void Counters::step_ends(double seconds, std::span<const Bytes> peaks, bool followed_plan) {
  ++numbers_.steps;
  numbers_.step_seconds = seconds;
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    DeviceSummary& device = numbers_.devices[i];
    device.peak_last_step = peaks[i];
    device.peak = std::max(device.peak, peaks[i]);
  }
  numbers_.followed_plan = followed_plan;
}

void Counters::evicted(DeviceOrdinal device, Bytes bytes) {
  if (static_cast<std::size_t>(device) < numbers_.devices.size()) numbers_.devices[device].evicted_last_step += bytes;
}

// Without regions all of it would be live until backward.
void Counters::region_ends(Bytes gone, Bytes live) {
  gone_in_regions_ += gone;
  numbers_.peak_if_kept = std::max(numbers_.peak_if_kept.value_or(0), live + gone_in_regions_);
}

void Counters::packed(Bytes plain, Bytes packed) {
  numbers_.packed_last_step += plain;
  numbers_.packed_to_last_step += packed;
}

void Counters::packing(double microseconds) {
  numbers_.pack_seconds += microseconds * 1e-6;
  recomputing_ += microseconds * 1e-6;
}

void Counters::replays(std::int64_t operators, double microseconds) {
  numbers_.replays += operators;
  numbers_.replays_beside_plan += operators;
  numbers_.replay_seconds += microseconds * 1e-6;
  recomputing_ += microseconds * 1e-6;
}

void Counters::kept(const Recipe& recipe, Bytes bytes) {
  this->kept(recipe.info->name,
             recipe.why_not_replayable
                 ? recipe.why_not_replayable
                 : "its result is not in memory of the session's device, or not of LibTorch's allocator",
             bytes);
}

void Counters::kept(const std::string& what, const char* why, Bytes bytes) {
  KeptOperator& kept = kept_[what];
  if (kept.values++ == 0) {
    kept.op = what;
    kept.why = why;
  }
  kept.bytes += bytes;
}

void Counters::held(const std::string& what, const char* why, Bytes bytes) {
  kept_[what] = {what, why, 1, std::max(bytes, kept_[what].bytes)};
}

void Counters::diverged(const std::string& why) {
  ++numbers_.divergences;
  add_newest(numbers_.last_divergences, {numbers_.steps + 1, why});
}

void Counters::note(const std::string& what) {
  ++numbers_.notes;
  add_newest(numbers_.last_notes, {numbers_.steps + 1, what});
}

Summary Counters::summary() const {
  Summary summary = numbers_;
  for (const auto& [storage, bytes] : unmetered_) summary.before_meter += bytes;
  for (const auto& [name, kept] : kept_) summary.kept.push_back(kept);
  std::stable_sort(summary.kept.begin(), summary.kept.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return summary;
}

}  // namespace reprise::internal
