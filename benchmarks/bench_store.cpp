// Codecs beside memcpy: speed of encoding and decoding, and what is left of the bytes.
//
// Speeds are of the array's own bytes in CPU time, as a share of what memcpy does with the same array, one thread. 0.3
// or better is the aim for half, bfloat16 and bits: then packing costs about as much as copying a few times.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "benchmark_main.h"
#include "store_codecs.h"

namespace reprise::benchmarks {
namespace {

struct Settings {
  CodecSettings codecs;
  bool json = false;
};

void print_json(const CodecSpeed& speed) {
  const nlohmann::ordered_json row = {{"codec", speed.codec},
                                      {"array", speed.array},
                                      {"plain_bytes", speed.plain_bytes},
                                      {"coded_bytes", speed.coded_bytes},
                                      {"room_bytes", speed.room_bytes},
                                      {"copy_seconds", speed.copy},
                                      {"encode_seconds", speed.encode},
                                      {"decode_seconds", speed.decode},
                                      {"encode_speed", speed.encode_speed()},
                                      {"decode_speed", speed.decode_speed()}};
  fmt::print("{}\n", row.dump());
}

void print_line(const CodecSpeed& speed) {
  const auto plain = static_cast<double>(speed.plain_bytes);
  fmt::print("{:<10} {:<24} {:>7.3f} {:>7.3f} {:>8.2f} {:>8.2f} {:>12.1f}\n", speed.codec, speed.array,
             static_cast<double>(speed.coded_bytes) / plain, static_cast<double>(speed.room_bytes) / plain,
             speed.encode_speed(), speed.decode_speed(), plain / speed.copy / 1e9);
}

void run_codecs(const Settings& settings) {
  if (!settings.json) {
    fmt::print("{:<10} {:<24} {:>7} {:>7} {:>8} {:>8} {:>12}\n", "codec", "array", "bytes", "room", "encode", "decode",
               "memcpy GB/s");
  }
  for (const CodecSpeed& speed : measure_codecs(settings.codecs)) {
    settings.json ? print_json(speed) : print_line(speed);
  }
}

}  // namespace

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Measures how fast the codecs of stores are beside memcpy, and how small they make arrays."};
  app.add_option("--codec", settings.codecs.codec, "only this one");
  app.add_option("--size", settings.codecs.mebibytes, "of an array, in MiB")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--repetitions", settings.codecs.repetitions, "whose medians are taken")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--json", settings.json, "one JSON object a line instead of a table");
  CLI11_PARSE(app, argc, argv);
  run_codecs(settings);
  return 0;
}

}  // namespace reprise::benchmarks
