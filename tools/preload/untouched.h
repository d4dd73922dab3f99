// What happens to a program that cannot be put under a budget.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace reprise {

// Says why on stderr. Then the program begins again without Reprise if REPRISE_IF_POSSIBLE is set, or else ends with
// exit code 2. Before main; uses nothing but the C library.
[[noreturn]] inline void untouched_or_not_at_all(const char* problem, const char* reason) {
  std::fprintf(stderr, "reprise: %s: %s\n", problem, reason);
  const char* const if_possible = std::getenv("REPRISE_IF_POSSIBLE");
  if (!if_possible || !*if_possible) {
    std::fprintf(stderr,
                 "reprise: the program was not started; with --if-possible, or REPRISE_IF_POSSIBLE=1, it runs "
                 "untouched\n");
    _exit(2);
  }
  // The same program, the same arguments, another environment.
  static char arguments[1 << 21], program[PATH_MAX];
  static char* list[1 << 17];
  std::FILE* const file = std::fopen("/proc/self/cmdline", "rb");
  const std::size_t length = file ? std::fread(arguments, 1, sizeof arguments, file) : 0;
  const ssize_t name = readlink("/proc/self/exe", program, sizeof program - 1);
  std::size_t count = 0;
  for (std::size_t i = 0; i < length && count + 1 < sizeof list / sizeof *list; i += std::strlen(arguments + i) + 1) {
    list[count++] = arguments + i;
  }
  if (name > 0 && count > 0 && length < sizeof arguments) {
    std::fprintf(stderr, "reprise: the program runs untouched\n");
    unsetenv("LD_PRELOAD");
    execv(program, list);
  }
  std::fprintf(stderr, "reprise: the program could not be started again: %s\n", std::strerror(errno));
  _exit(2);
}

}  // namespace reprise
