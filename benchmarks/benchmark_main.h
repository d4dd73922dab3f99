// A program that measures: its own part of `main`.
#pragma once

namespace reprise::benchmarks {

// Reads the options, measures and prints. Returns the exit code. What it throws is printed, and the exit code is 2.
int run(int argc, char** argv);

}  // namespace reprise::benchmarks
