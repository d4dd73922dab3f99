// The `main` of every program here.
#include "benchmark_main.h"

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  try {
    return reprise::benchmarks::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
