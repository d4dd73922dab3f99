// A child of the test's process, made by fork(): for tests of what a child may do. It has a deadline, so that one that
// hangs is a failure and not the end of all tests.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <thread>

namespace reprise::testing {

enum class Ending {
  at_once,  // _exit
  by_exit,  // exit: global objects are destroyed
};

inline constexpr int hung = -1, threw = 99;

// The exit code of a child, or 128 and the signal that ended it; `hung` if it had to be killed.
[[nodiscard]] inline int code_of(pid_t child, double seconds = 60) {
  int status = 0;
  for (double waited = 0; ::waitpid(child, &status, WNOHANG) == 0; waited += 0.002) {
    if (waited > seconds) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return hung;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A child that does this and ends with the result as its exit code. It never returns into the tests.
[[nodiscard]] inline pid_t start_child(const std::function<int()>& work, Ending ending = Ending::at_once) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  int code = threw;
  try {
    code = work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in the child: %s\n", error.what());
  }
  if (ending == Ending::at_once) ::_exit(code);
  std::exit(code);
}

// The same, and waits for it.
[[nodiscard]] inline int in_child(const std::function<int()>& work, Ending ending = Ending::at_once) {
  return code_of(start_child(work, ending));
}

}  // namespace reprise::testing
