// A part of the benchmark of chains: what plans take, in time and in memory.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace reprise::benchmarks {

// The first pass under a budget against its time limit; the chain programme for 1 000 layers; H-Revolve for 100 000.
void measure_planning(int repetitions, bool quiet, nlohmann::json&);

// What a pass of very many steps adds to the memory of a process of its own.
void measure_memory(bool quiet, nlohmann::json&);

}  // namespace reprise::benchmarks
