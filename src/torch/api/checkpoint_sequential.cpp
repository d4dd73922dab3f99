#include "reprise/torch/checkpoint_sequential.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>

#include "reprise/trace/error.h"
#include "torch/api/checkpoint_places.h"
#include "torch/libtorch/clock.h"

namespace reprise {
using namespace internal;
namespace {

std::size_t segments_within(const std::vector<double>& weights, double most, std::vector<std::size_t>* ends) {
  std::size_t segments = 1;
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (sum + weights[i] > most && sum > 0) {
      ++segments;
      sum = 0;
      if (ends) ends->push_back(i);
    }
    sum += weights[i];
  }
  if (ends) ends->push_back(weights.size());
  return segments;
}

void check_segments(int segments, std::size_t modules) {
  if (segments >= 1 && static_cast<std::size_t>(segments) <= modules) return;
  throw BadOption("[checkpoint] segments is " + std::to_string(segments) +
                  ": it has to be between 1 and the number of " + "modules, " + std::to_string(modules));
}

}  // namespace

std::vector<std::size_t> balanced_segments(const std::vector<double>& weights, int segments) {
  check_segments(segments, weights.size());
  // The smallest sum of any stretch that is enough for all of them. There are few different ones; bisection finds it
  // among all sums of stretches well enough in doubles.
  double low = *std::max_element(weights.begin(), weights.end());
  double high = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (int i = 0; i < 100 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (segments_within(weights, middle, nullptr) <= static_cast<std::size_t>(segments)) {
      high = middle;
    } else {
      if (low == middle) break;
      low = middle;
    }
  }
  std::vector<std::size_t> ends;
  segments_within(weights, high, &ends);
  // Segments that are left over split the longest ones: as many were asked for.
  while (ends.size() < static_cast<std::size_t>(segments)) {
    std::size_t longest = 0, at = 0, first = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i] - first > longest) longest = ends[i] - first, at = i;
      first = ends[i];
    }
    ends.insert(ends.begin() + static_cast<std::ptrdiff_t>(at), ends[at] - longest / 2);
  }
  return ends;
}

CheckpointedSequence::CheckpointedSequence(std::size_t modules)
    : sites_([&] {
        std::vector<std::unique_ptr<CheckpointSite>> sites(modules);
        for (auto& site : sites) site = std::make_unique<CheckpointSite>();
        return sites;
      }()),
      bytes_(modules),
      seconds_(modules) {}

CheckpointedSequence& CheckpointedSequence::at(const std::source_location& place, std::size_t modules) {
  using Key = std::tuple<std::string, std::uint_least32_t, std::uint_least32_t, std::size_t>;
  const std::lock_guard lock(checkpoint_places_mutex);
  static auto& all = *new std::map<Key, CheckpointedSequence>;
  const Key key{place.file_name(), place.line(), place.column(), modules};
  return all.try_emplace(key, modules).first->second;
}

std::vector<std::size_t> CheckpointedSequence::ends(int segments, Balance balance) {
  check_segments(segments, bytes_.size());
  const std::lock_guard lock(checkpoint_places_mutex);
  if (measured_ < bytes_.size()) {
    std::vector<std::size_t> single(bytes_.size());
    std::iota(single.begin(), single.end(), 1);
    return single;
  }
  return balanced_segments(balance == Balance::bytes ? bytes_ : seconds_, segments);
}

double CheckpointedSequence::seconds() {
  return thread_microseconds() * 1e-6;
}

void CheckpointedSequence::measured(std::size_t module, Bytes evicted, double seconds) {
  const std::lock_guard lock(checkpoint_places_mutex);
  bytes_[module] = static_cast<double>(evicted);
  seconds_[module] = seconds;
  if (module == measured_) ++measured_;
}

}  // namespace reprise
