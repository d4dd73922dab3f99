// What happens to a program that cannot be put under a budget.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace reprise {

// Removes all entries with this file name from LD_PRELOAD; where there are none, LD_PRELOAD goes as a whole, or the
// program would begin again and again. Uses nothing but the C library.
inline void remove_preloaded(const char* file) {
  const char* entries = std::getenv("LD_PRELOAD");
  static char rest[1 << 17];  // what is longer, the system does not pass on
  std::size_t length = 0;
  bool removed = false;
  while (entries && *entries) {
    const std::size_t entry = std::strcspn(entries, ": ");
    const char* const slash = static_cast<const char*>(memrchr(entries, '/', entry));
    const char* const name = slash ? slash + 1 : entries;
    const std::size_t name_length = static_cast<std::size_t>(entries + entry - name);
    if (name_length == std::strlen(file) && std::strncmp(name, file, name_length) == 0) {
      removed = true;
    } else if (entry > 0 && length + entry + 2 <= sizeof rest) {
      if (length > 0) rest[length++] = ':';
      std::memcpy(rest + length, entries, entry);
      length += entry;
    }
    entries += entry + (entries[entry] ? 1 : 0);
  }
  rest[length] = '\0';
  if (removed && length > 0) {
    setenv("LD_PRELOAD", rest, 1);
  } else {
    unsetenv("LD_PRELOAD");
  }
}

// Says why on stderr. Then the program begins again without Reprise if REPRISE_IF_POSSIBLE is set, or else ends with
// exit code 2. Before main; uses nothing but the C library.
[[noreturn]] inline void untouched_or_not_at_all(const char* problem, const char* reason) {
  std::fprintf(stderr, "reprise: %s: %s\n", problem, reason);
  const char* const if_possible = secure_getenv("REPRISE_IF_POSSIBLE");
  if (!if_possible || !*if_possible || std::strcmp(if_possible, "off") == 0) {
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
    remove_preloaded("libreprise_preload.so");
    execv(program, list);
  }
  std::fprintf(stderr, "reprise: the program could not be started again: %s\n", std::strerror(errno));
  _exit(2);
}

}  // namespace reprise
