// How much memory this process may use, on machines made of files.
#include "torch/memory/memory.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reprise/torch/session.h"
#include "reprise/trace/error.h"
#include "support/temporary_folder.h"

namespace reprise {
using namespace internal;
namespace {

constexpr Bytes machine = Bytes{16000000} * 1024;

// A machine with 16,000,000 kB.
class Machine {
 public:
  Machine() { write("proc/meminfo", "MemTotal:       16000000 kB\nMemFree:         1 kB\n"); }
  Machine& write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder_ / file).parent_path());
    folder_.write(file, text);
    return *this;
  }
  [[nodiscard]] Bytes limit() const { return memory_limit(folder_.path()); }
  [[nodiscard]] Bytes fraction(double share) const { return fraction_of_memory(share, folder_.path()); }

 private:
  testing::TemporaryFolder folder_;
};

TEST(MemoryLimit, WithoutControlGroupsIsTheMachine) {
  EXPECT_EQ(Machine().limit(), machine);
}

TEST(MemoryLimit, OfAControlGroupIsTheSmallestOnTheWayUp) {
  Machine of;
  of.write("proc/self/cgroup", "0::/user.slice/job\n");
  EXPECT_EQ(of.limit(), machine) << "no such files";
  of.write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  EXPECT_EQ(of.limit(), machine);
  of.write("sys/fs/cgroup/user.slice/memory.max", "2000000\n");
  EXPECT_EQ(of.limit(), 2000000);
  of.write("sys/fs/cgroup/user.slice/job/memory.max", "1000000\n");
  EXPECT_EQ(of.limit(), 1000000);
  of.write("sys/fs/cgroup/user.slice/job/memory.max", "3000000\n");
  EXPECT_EQ(of.limit(), 2000000);
}

TEST(MemoryLimit, OfAContainerIsAtTheRootOfWhatItSees) {
  Machine of;
  of.write("sys/fs/cgroup/memory.max", "5000000\n");
  for (const char* group : {"0::/\n", "0::/../../elsewhere\n", "0::/docker/0123456789abcdef\n"}) {
    of.write("proc/self/cgroup", group);
    EXPECT_EQ(of.limit(), 5000000) << group;
  }
}

TEST(MemoryLimit, OfVersionOneIsThatOfItsMemoryController) {
  Machine of;
  of.write("proc/self/cgroup", "12:pids:/job\n9:cpu,memory:/job/mine\n3:memory_bandwidth:/job\n0::/ignored\n");
  of.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(of.limit(), machine);
  of.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "700000\n");
  EXPECT_EQ(of.limit(), 700000);
  of.write("sys/fs/cgroup/memory/job/mine/memory.limit_in_bytes", "600000\n");
  EXPECT_EQ(of.limit(), 600000);
}

TEST(MemoryLimit, AboveTheMachinesMemoryIsTheMachines) {
  Machine of;
  of.write("proc/self/cgroup", "0::/job\n").write("sys/fs/cgroup/job/memory.max", "99999999999999\n");
  EXPECT_EQ(of.limit(), machine);
}

TEST(MemoryLimit, IgnoresWhatItCannotRead) {
  Machine of;
  of.write("proc/self/cgroup", "nonsense\n\n::\n0:\n0::/job\n");
  for (const char* text : {"", "\n", "-5\n", "many\n", "99999999999999999999999999\n"}) {
    of.write("sys/fs/cgroup/job/memory.max", text);
    EXPECT_EQ(of.limit(), machine) << text;
  }
}

TEST(MemoryLimit, OfAnUnknownMachineIsAnError) {
  Machine of;
  of.write("proc/meminfo", "MemFree: 1 kB\n");
  EXPECT_THROW((void)of.limit(), Error);
}

TEST(FractionOfMemory, IsAShareOfTheLimit) {
  Machine of;
  EXPECT_EQ(of.fraction(1), machine);
  of.write("proc/self/cgroup", "0::/job\n").write("sys/fs/cgroup/job/memory.max", "1000001\n");
  EXPECT_EQ(of.fraction(0.5), 500000);
}

TEST(FractionOfMemory, OutsideZeroToOneIsABadOption) {
  for (const double share : {0.0, -0.5, 1.0001, 80.0, std::nan("")}) {
    EXPECT_THROW((void)fraction_of_memory(share), BadOption) << share;
  }
  try {
    (void)fraction_of_memory(1.5);
    FAIL();
  } catch (const BadOption& error) {
    EXPECT_STREQ(error.what(), "[memory] the share is 1.5, but has to be above 0 and at most 1");
  }
}

TEST(FractionOfMemory, OfThisMachineIsSomething) {
  EXPECT_GT(fraction_of_memory(0.8), 0);
  EXPECT_LE(fraction_of_memory(0.8), fraction_of_memory(1));
}

}  // namespace
}  // namespace reprise
