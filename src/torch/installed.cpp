#include "torch/installed.h"

#include "reprise/trace/error.h"
#include "torch/backward.h"
#include "torch/forks.h"
#include "torch/freed.h"
#include "torch/meter.h"
#include "torch/operators.h"
#include "torch/pressure.h"
#include "torch/process.h"
#include "torch/running_libtorch.h"

namespace reprise::internal {
namespace {

// Before main; and so that at a fork our locks are taken after those of libraries that register their handlers later.
const bool installed = [] {
  if (!runs_as_compiled()) return false;
  install_engine();
  meter::callbacks(make_room, memory_freed);
  process().operators().listen();
  install_fork_handlers();
  return true;
}();

}  // namespace

void need_installed() {
  if (runs_as_compiled()) return;
  throw Error("[libtorch] this process runs LibTorch " + running_libtorch() + ", and Reprise was compiled against " +
              compiled_libtorch() +
              ": insides that it uses may differ, so nothing can be recorded. Compile Reprise against the LibTorch of "
              "this process, or run the program with " +
              compiled_libtorch());
}

}  // namespace reprise::internal
