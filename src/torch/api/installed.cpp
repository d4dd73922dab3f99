#include "torch/api/installed.h"

#include "reprise/trace/error.h"
#include "torch/api/forks.h"
#include "torch/evict/freed.h"
#include "torch/evict/pressure.h"
#include "torch/hooks/backward.h"
#include "torch/libtorch/version_check.h"
#include "torch/memory/meter.h"
#include "torch/recipes/operator_table.h"

namespace reprise::internal {
namespace {

// Before main; and so that at a fork our locks are taken after those of libraries that register their handlers later.
const bool installed = [] {
  if (!runs_as_compiled()) return false;
  install_engine();
  meter::callbacks(make_room, memory_freed);
  OperatorTable::of_process().listen();
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
