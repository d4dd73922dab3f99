// What a tier below a device costs: as measured, as learnt, and as plans and the online policy count it.
#pragma once

#include <algorithm>
#include <optional>

#include "reprise/trace/trace.h"

namespace reprise::internal {

// Microseconds of one thing: so many for each value (a file, or a copy), and so many for each byte.
struct LinearCost {
  double each = 0, byte = 0;

  [[nodiscard]] double at(Bytes bytes) const { return each + byte * static_cast<double>(bytes); }
};

// A linear cost, learnt from what was seen lately: decayed least squares, weighted by 1/(64 KiB + bytes)^2, so that
// large transfers count by their errors in each byte. Neither part is ever zero.
class LinearCostEstimator {
 public:
  [[nodiscard]] const LinearCost& cost() const { return cost_; }

  void learn(Bytes bytes, double seen) {
    constexpr double memory = 0.95, rare = 5, share = 0.01, alike = 0.1, small = 64 << 10;
    constexpr int enough = 8;
    const auto size = static_cast<double>(std::max<Bytes>(bytes, 1));
    seen = std::max(seen, 1e-3);
    if (++count_ > enough) {  // a thread that was kept from working is no reason to believe anything else
      seen = std::clamp(seen, cost_.at(bytes) / rare, cost_.at(bytes) * rare);
    }
    const double weight = 1 / ((small + size) * (small + size));
    for (double* sum : {&all_, &size_, &square_, &time_, &product_}) *sum *= memory;
    all_ += weight;
    size_ += weight * size;
    square_ += weight * size * size;
    time_ += weight * seen;
    product_ += weight * size * seen;
    const double mean_size = size_ / all_, mean_time = time_ / all_;
    const double variance = square_ / all_ - mean_size * mean_size;
    if (count_ > 1 && variance > alike * alike * mean_size * mean_size) {
      cost_.byte = (product_ / all_ - mean_size * mean_time) / variance;
      cost_.each = mean_time - cost_.byte * mean_size;
    } else {  // all of one size: nothing tells its parts from each other
      const double scale = mean_time / (cost_.each + cost_.byte * mean_size);
      cost_ = {cost_.each * scale, cost_.byte * scale};
    }
    cost_.each = std::max(cost_.each, share * mean_time);
    cost_.byte = std::max(cost_.byte, share * mean_time / mean_size);
  }

 private:
  LinearCost cost_{20, 5e-4};  // before anything was seen
  int count_ = 0;
  double all_ = 0, size_ = 0, square_ = 0, time_ = 0, product_ = 0;  // of weights, and of what they weigh
};

// What one transfer costs.
struct TransferCost {
  double caller = 0;  // CPU time of those who ask for it and wait for it, for each value
  LinearCost cpu;     // CPU time of whoever does it, mostly the thread of a disk
  LinearCost time;    // from its begin to its end there

  [[nodiscard]] double cost(Bytes bytes) const { return caller + cpu.at(bytes); }
  // Returns what it takes if nobody does anything else meanwhile.
  [[nodiscard]] double alone(Bytes bytes) const { return caller + std::max(cpu.at(bytes), time.at(bytes)); }
};

// A transfer costs the computation something (on the CPU all CPU time, whoever spends it) and takes time beside it: so
// a plan with the tier is cheaper than one without only if less is spent on it, and it waits no longer.
struct TierCosts {
  const char* name = "disk";
  std::optional<Bytes> capacity = {};  // empty: no limit of its own
  bool duplex = false;                 // it puts and gets at the same time
  Bytes least = 4 << 10;               // less is not worth a transfer
  TransferCost put = {}, get = {}, remove = {};

  [[nodiscard]] bool takes(Bytes bytes) const { return bytes >= least; }
  // What is put is removed some time, mostly when it was got, and the thread does nothing else meanwhile.
  [[nodiscard]] double put_cost(Bytes bytes) const { return put.cost(bytes) + remove.cost(bytes); }
  [[nodiscard]] double get_cost(Bytes bytes) const { return get.cost(bytes); }
  [[nodiscard]] double put_time(Bytes bytes) const { return put.time.at(bytes); }
  [[nodiscard]] double get_time(Bytes bytes) const { return get.time.at(bytes) + remove.time.at(bytes); }
  // Returns all that a plan counts for a value that goes there and comes back.
  [[nodiscard]] double both_ways(Bytes bytes) const {
    return put_cost(bytes) + get_cost(bytes) + put_time(bytes) + get_time(bytes);
  }
  // Without a plan: whoever needs the memory waits for the put, and whoever needs the value for the get.
  [[nodiscard]] double put_alone(Bytes bytes) const { return put.alone(bytes) + remove.cost(bytes); }
  [[nodiscard]] double get_alone(Bytes bytes) const { return get.alone(bytes); }
};

// What plans may use below plain memory.
struct OfferedTiers {
  OfferedTiers(bool with_packing) : pack(with_packing) {}
  OfferedTiers(bool with_packing, std::optional<TierCosts> with_tier) : pack(with_packing), below(with_tier) {}

  bool pack;
  std::optional<TierCosts> below;  // empty: none
};

}  // namespace reprise::internal
