#include "terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace reprise::tools::terminal {

bool is_there() {
  const char* const kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) && kind && std::string_view(kind) != "dumb";
}

std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void show(std::string_view line) {
  fmt::print(stderr, "\r\x1b[2K{}", line);
  std::fflush(stderr);
}

}  // namespace reprise::tools::terminal
