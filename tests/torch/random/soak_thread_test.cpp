// All kinds of company at once, for as long as one likes: bits are right and resident memory is flat.
//
// REPRISE_SOAK_SECONDS says how long; without it ten seconds, and with REPRISE_LONG an hour. REPRISE_SOAK_KIB is the
// room that they share, REPRISE_SOAK_WITHOUT names guests that do not come, to find out whose fault something is.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "torch/memory/meter.h"
#include "torch/random/guests.h"

namespace reprise {
using namespace internal;
namespace {

using testing::Guest;
using Guests = std::vector<std::unique_ptr<Guest>>;
using Clock = std::chrono::steady_clock;

double duration() {
  if (const char* const seconds = std::getenv("REPRISE_SOAK_SECONDS")) return std::atof(seconds);
  return std::getenv("REPRISE_LONG") ? 3600 : 10;
}

// For all of them together, beyond what is live before they come.
Bytes room() {
  if (const char* const kibibytes = std::getenv("REPRISE_SOAK_KIB")) return std::atol(kibibytes) * 1_KiB;
  return 700_KiB;
}

double mebibytes(Bytes bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

void print(double seconds, Bytes resident, const Guests& guests) {
  std::cout << "[   soak   ] " << static_cast<int>(seconds) << " s, resident " << mebibytes(resident) << " MiB, live "
            << mebibytes(meter::live()) << " MiB, " << testing::replays() << " replays;";
  for (const auto& guest : guests) {
    std::cout << " " << guest->name() << " " << guest->rounds();
    if (guest->refused()) std::cout << " (" << guest->refused() << " refused)";
    if (guest->complaints()) std::cout << " (" << guest->complaints() << " WRONG)";
    std::cout << ",";
  }
  std::cout << std::endl;
}

// Somebody who does nothing for so long waits for ever.
class Watch {
 public:
  explicit Watch(const Guests& guests) : seen_(guests.size(), {0, Clock::now()}) {}
  void look(const Guests& guests) {
    for (std::size_t i = 0; i < guests.size(); ++i) {
      if (seen_[i].first != guests[i]->rounds()) seen_[i] = {guests[i]->rounds(), Clock::now()};
      if (guests[i]->gone() || Clock::now() - seen_[i].second < std::chrono::seconds(60)) continue;
      std::cout << "[   soak   ] " << guests[i]->name() << " has not moved for a minute" << std::endl;
      std::abort();  // nobody could be joined; a debugger sees where they are
    }
  }

 private:
  std::vector<std::pair<std::uint64_t, Clock::time_point>> seen_;
};

Bytes resident() {
  malloc_trim(0);
  return meter::resident();
}

// What resident memory may grow by, once it has settled.
constexpr Bytes growth = 64_MiB;

TEST(SoakThread, WithAllKindsOfCompanyBitsAreRightAndMemoryIsFlat) {
  const double seconds = duration();
  const Bytes budget = meter::live() + room();
  Guests guests = testing::all_guests(budget);
  if (const char* const names = std::getenv("REPRISE_SOAK_WITHOUT"))
    std::erase_if(guests,
                  [&](const auto& guest) { return std::string(names).find(guest->name()) != std::string::npos; });
  Watch watch(guests);
  const auto start = Clock::now();
  const double every = std::min(60.0, seconds / 8), settling = std::max(60.0, seconds / 4);
  double told = 0;
  Bytes settled = 0;  // resident by then; zero: not yet
  for (double now = 0; now < seconds && !HasFailure();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    now = std::chrono::duration<double>(Clock::now() - start).count();
    watch.look(guests);
    if (now - told < every) continue;
    told = now;
    const Bytes is = resident();
    print(now, is, guests);
    if (settled == 0 && now >= settling) settled = is;
#ifndef REPRISE_SANITIZED
    if (settled) EXPECT_LE(is, settled + growth) << "resident memory grows";
#endif
  }
  for (const auto& guest : guests) guest->leave();
  while (!std::all_of(guests.begin(), guests.end(), [](const auto& guest) { return guest->gone(); })) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    watch.look(guests);
  }
  meter::fail_after(-1);
  print(seconds, resident(), guests);
  EXPECT_GT(testing::replays(), 0u) << "the budget was no limit";
  for (const auto& guest : guests) {
    EXPECT_GT(guest->rounds(), 0u) << guest->name();
    EXPECT_EQ(guest->complaints(), 0u) << guest->name() << ": " << guest->first_complaint();
    EXPECT_LE(guest->refused(), guest->rounds() / 2) << guest->name() << " had no room";
  }
}

}  // namespace
}  // namespace reprise
