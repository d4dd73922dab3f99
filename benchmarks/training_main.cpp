// The program that measures training, bench_training NAME: one for both, so that they measure in the same way.
#include <cstring>
#include <iostream>

#include "bench_compare.h"
#include "bench_live.h"
#include "benchmark_main.h"

namespace reprise::benchmarks {

int run(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  const bool compares = std::strcmp(name, "compare") == 0;
  if (!compares && std::strcmp(name, "live") != 0) {
    std::cerr << "usage: bench_training live|compare [OPTION ...]\n";
    return 2;
  }
  return (compares ? compare : live)(argc - 1, argv + 1);
}

}  // namespace reprise::benchmarks
