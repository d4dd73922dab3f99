#include "torch/installed.h"

#include "torch/backward.h"
#include "torch/forks.h"
#include "torch/freed.h"
#include "torch/meter.h"
#include "torch/operators.h"
#include "torch/pressure.h"
#include "torch/process.h"

namespace reprise::internal {
namespace {

// Before main; and so that at a fork our locks are taken after those of libraries that register their handlers later.
const bool installed = [] {
  install_engine();
  meter::callbacks(make_room, memory_freed);
  process().operators().listen();
  install_fork_handlers();
  return true;
}();

}  // namespace

void need_installed() {}

}  // namespace reprise::internal
