#include "torch/libtorch/version_check.h"

#include <torch/version.h>

#include <map>

// Declared here, because not every version of LibTorch has the header among those that it installs.
namespace caffe2 {
const std::map<std::string, std::string>& GetBuildOptions();
}

namespace reprise::internal {

// Not at::show_config(), which also looks for devices: a process that has done so with CUDA can no longer fork.
std::string running_libtorch() {
  const auto& built_with = caffe2::GetBuildOptions();
  const auto version = built_with.find("TORCH_VERSION");
  return version == built_with.end() ? "of an unknown version" : version->second;
}

std::string compiled_libtorch() {
  return TORCH_VERSION;
}

bool runs_as_compiled() {
  return running_libtorch() == compiled_libtorch();
}

}  // namespace reprise::internal
