// Runs a target where the compiler has no libFuzzer, with its options as far as ./test uses them: every file of the
// folders, then so many seconds of inputs that are made of these files by chance. Nothing tells it which of them reach
// new code, so it finds less than libFuzzer does in the same time.
//
//   NAME_fuzz [-max_total_time=SECONDS] [-max_len=BYTES] FOLDER...
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

using Input = std::vector<std::uint8_t>;
namespace fs = std::filesystem;

std::mt19937_64 random_numbers(1);

std::size_t below(std::size_t count) {
  return count == 0 ? 0 : random_numbers() % count;
}

// One of the changes that libFuzzer makes, too.
void change(Input& input, const Input& other) {
  const std::size_t at = below(input.size() + 1), length = below(std::min<std::size_t>(input.size() - at, 16) + 1);
  const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
  constexpr std::uint64_t limits[] = {0, 1, 0x7f, 0xff, 0xffff, 1U << 31, ~std::uint64_t{0}, std::uint64_t{1} << 63};
  switch (below(6)) {
    case 0:
      if (at < input.size()) input[at] ^= static_cast<std::uint8_t>(1U << below(8));
      break;
    case 1:
      if (at < input.size()) input[at] = static_cast<std::uint8_t>(random_numbers());
      break;
    case 2: input.erase(place, place + static_cast<std::ptrdiff_t>(length)); break;
    case 3: {
      const std::size_t from = below(other.size() + 1),
                        count = below(std::min<std::size_t>(other.size() - from, 64) + 1);
      input.insert(place, other.begin() + static_cast<std::ptrdiff_t>(from),
                   other.begin() + static_cast<std::ptrdiff_t>(from + count));
      break;
    }
    case 4: {
      const std::uint64_t number = limits[below(std::size(limits))];
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&number);
      std::copy_n(bytes, std::min<std::size_t>(input.size() - at, sizeof number), place);
      break;
    }
    case 5: input.resize(at); break;
  }
}

Input last;  // what was being tried when the program ended

void keep_what_failed() {
  std::ofstream("crash-input", std::ios::binary)
      .write(reinterpret_cast<const char*>(last.data()), static_cast<std::streamsize>(last.size()));
  std::cerr << "the input is in " << fs::absolute("crash-input").string() << "\n";
}

void run(const Input& input) {
  last = input;
  LLVMFuzzerTestOneInput(last.data(), last.size());
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_set_death_callback(void (*)());
#endif

int main(int count, char** words) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(keep_what_failed);
#endif
  std::signal(SIGABRT, [](int) { keep_what_failed(); });
  std::vector<Input> inputs = {{}};
  double seconds = 0;
  std::size_t longest = 4096;
  for (const std::string& word : std::vector<std::string>(words + 1, words + count)) {
    const std::string value = word.substr(word.find('=') + 1);
    if (word.starts_with("-max_total_time=")) {
      seconds = std::stod(value);
    } else if (word.starts_with("-max_len=")) {
      longest = std::stoul(value);
    } else if (!word.starts_with("-")) {
      for (const auto& entry : fs::directory_iterator(word)) {
        std::ifstream file(entry.path(), std::ios::binary);
        inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      }
    }
  }
  for (const Input& input : inputs) run(input);

  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::size_t runs = inputs.size();
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    Input input = inputs[below(inputs.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(input, inputs[below(inputs.size())]);
    input.resize(std::min(input.size(), longest));
    run(input);
  }
  std::cout << inputs.size() << " files, " << runs << " runs\n";
}
