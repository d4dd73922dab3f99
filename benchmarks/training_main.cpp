// The program that measures training, bench_training NAME: one for both, so that they measure in the same way.
#include <cstring>
#include <exception>
#include <iostream>

#include "bench_compare.h"
#include "bench_live.h"

int main(int argc, char** argv) {
  using namespace reprise::benchmarks;
  const char* const name = argc > 1 ? argv[1] : "";
  const bool compares = std::strcmp(name, "compare") == 0;
  if (!compares && std::strcmp(name, "live") != 0) {
    std::cerr << "usage: bench_training live|compare [OPTION ...]\n";
    return 2;
  }
  try {
    return (compares ? compare : live)(argc - 1, argv + 1);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
