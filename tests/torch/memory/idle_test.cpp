// Freed memory, before the first step and when no step follows.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "reprise/torch/session.h"
#include "torch/memory/heap.h"
#include "torch/memory/meter.h"

namespace reprise {
namespace {

constexpr Bytes MiB = 1 << 20;

// Bytes of this process that the system takes as soon as somebody needs memory.
Bytes offered() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    Bytes kilobytes = 0;
    if (word == "LazyFree:" && file >> kilobytes) return kilobytes * 1024;
  }
  return -1;
}

void train(Session& session) {
  const auto step = session.step();
  const auto x = torch::ones({4 << 20}, torch::requires_grad());
  x.sin().exp().tanh().sum().backward();
}

TEST(FirstStepWithinABudget, GivesBackWhatTheProgramHasFreedBefore) {
#ifdef REPRISE_SANITIZED
  GTEST_SKIP() << "malloc is the sanitizer's";
#endif
  std::vector<std::unique_ptr<char[]>> small;  // malloc keeps what is freed of these
  for (int i = 0; i < 16 << 10; ++i) {
    small.push_back(std::make_unique<char[]>(8 << 10));
    std::memset(small.back().get(), 1, 8 << 10);
  }
  small.erase(small.begin(), small.end() - 1);
  const Bytes before = internal::meter::resident();
  Session session({.budget = 512 * MiB});
  train(session);
  const Bytes of_the_step = internal::meter::peak();
  EXPECT_LT(internal::meter::resident(), before - 64 * MiB + of_the_step);
}

TEST(ALowerBudget, GivesMemoryBackAtOnceAndNotInTheNextStep) {
  Session session({.budget = 512 * MiB});
  train(session);
  if (!internal::heap::keeping()) GTEST_SKIP() << "nothing is kept in this build";
  ASSERT_GT(internal::heap::cached(), 32 * MiB);
  const Bytes before = internal::meter::resident();
  session.budget(8 * MiB);
  EXPECT_LE(internal::heap::cached(), 9 * MiB);
  EXPECT_LT(internal::meter::resident(), before - 24 * MiB);
}

TEST(IdleProcess, OffersTheSystemWhatItsStepsHaveFreed) {
  if (offered() < 0) GTEST_SKIP() << "the system does not tell what it was offered";
  Session session({.budget = 512 * MiB});
  train(session);
  if (!internal::heap::keeping()) GTEST_SKIP() << "nothing is kept in this build";
  ASSERT_GT(internal::heap::cached(), 32 * MiB);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (offered() < 32 * MiB && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_GE(offered(), 32 * MiB);
  train(session);  // and takes it again
  EXPECT_LT(offered(), 32 * MiB);
}

}  // namespace
}  // namespace reprise
