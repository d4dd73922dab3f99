#include "interrupt.h"

#include <csignal>

namespace reprise::tools {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not wait");

extern "C" void on_interrupt(int) {
  interrupted.store(true, std::memory_order_relaxed);
}

}  // namespace

const std::atomic<bool>* cancel_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;  // the second one finds the default again
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  return &interrupted;
}

}  // namespace reprise::tools
