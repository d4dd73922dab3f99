#include "store_codecs.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "reprise/store/codec.h"
#include "reprise/trace/error.h"

namespace reprise::benchmarks {
namespace {

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Work>
double seconds_of(Work work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

template <class T>
Array filled(std::size_t bytes, std::function<T(std::mt19937&)> next) {
  // The first part, again and again: drawing random numbers takes longer than everything that is measured.
  constexpr std::size_t drawn = 1 << 20;
  std::mt19937 random(1);
  std::vector<T> numbers(bytes / sizeof(T));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i < drawn ? next(random) : numbers[i - drawn];
  return Array(ArrayView(numbers));
}

struct Subject {
  const char* codec;
  const char* array;
  std::function<Array(std::size_t)> make;
};

template <class T>
Array activations(std::size_t bytes) {
  std::normal_distribution<T> normal;
  return filled<T>(bytes, [=](std::mt19937& random) mutable { return normal(random); });
}

Array rectified(std::size_t bytes) {
  std::normal_distribution<float> normal;
  return filled<float>(bytes, [=](std::mt19937& random) mutable { return std::max(normal(random), 0.0f); });
}

Array dropout_mask(std::size_t bytes) {
  return filled<float>(bytes, [](std::mt19937& random) { return random() % 10 == 0 ? 0.0f : 1 / 0.9f; });
}

Array indices(std::size_t bytes, std::uint32_t below) {
  return filled<std::int64_t>(bytes, [=](std::mt19937& random) { return static_cast<std::int64_t>(random() % below); });
}

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all{
      {"half", "float32, normal", &activations<float>},
      {"half", "float64, normal", &activations<double>},
      {"bfloat16", "float32, normal", &activations<float>},
      {"bfloat16", "float64, normal", &activations<double>},
      {"bits", "float32, dropout mask", &dropout_mask},
      {"int8", "float32, normal", &activations<float>},
      {"int8", "float64, normal", &activations<double>},
      {"small", "int64, below 200", [](std::size_t bytes) { return indices(bytes, 200); }},
      {"small", "int64, below 50000", [](std::size_t bytes) { return indices(bytes, 50'000); }},
      {"zstd", "float32, half zeros", &rectified},
      {"zstd", "int64, below 50000", [](std::size_t bytes) { return indices(bytes, 50'000); }},
      {"exact", "float32, normal", &activations<float>},
  };
  return all;
}

CodecSpeed measure(const Subject& subject, const CodecSettings& settings) {
  const Codec& used = codec(subject.codec);
  const Array array = subject.make(settings.mebibytes << 20);
  CodecSpeed speed{.codec = subject.codec, .array = subject.array};
  speed.plain_bytes = array.bytes();
  speed.room_bytes = used.room(array).value();
  // Filled with something, so that no page is touched for the first time while the clock runs.
  std::vector<std::byte> room(speed.room_bytes, std::byte{1}), out(array.bytes(), std::byte{1}), copy(out);
  std::vector<double> copying, encoding, decoding;
  for (int i = 0; i < settings.repetitions + 1; ++i) {
    copying.push_back(seconds_of([&] { std::memcpy(copy.data(), array.data().data(), array.bytes()); }));
    encoding.push_back(seconds_of([&] {
      const std::size_t bytes = used.room(array).value();
      speed.coded_bytes = used.encode(array, std::span(room).first(bytes)).value();
    }));
    const auto coded = std::span(room).first(speed.coded_bytes);
    decoding.push_back(seconds_of([&] { used.decode(coded, array.element(), out); }));
    if (i > 0) continue;  // the first time everything is slower
    for (auto* seconds : {&copying, &encoding, &decoding}) seconds->clear();
  }
  if (used.exact() && !std::ranges::equal(out, array.data())) throw Error("[bench store] an array came back changed");
  speed.copy = median(copying);
  speed.encode = median(encoding);
  speed.decode = median(decoding);
  return speed;
}

}  // namespace

std::vector<CodecSpeed> measure_codecs(const CodecSettings& settings) {
  if (!settings.codec.empty()) (void)codec(settings.codec);  // throws if there is none
  std::vector<CodecSpeed> speeds;
  for (const Subject& subject : subjects()) {
    if (settings.codec.empty() || settings.codec == subject.codec) speeds.push_back(measure(subject, settings));
  }
  return speeds;
}

}  // namespace reprise::benchmarks
