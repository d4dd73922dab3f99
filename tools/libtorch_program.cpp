#include "libtorch_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "command.h"

namespace reprise::tools {
namespace {

char** own_arguments = nullptr;

std::filesystem::path own_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

}  // namespace

void with_arguments(char** given) {
  own_arguments = given;
}

std::optional<std::filesystem::path> libtorch_program() {
  const auto path = own_folder() / "reprise-torch";
  return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

int go_on_in_libtorch_program() {
  const auto program = libtorch_program();
  if (!program) throw UsageError(without_libtorch("reprise-torch"));
  execv(program->c_str(), own_arguments);
  throw UsageError(fmt::format("{} cannot be started: {}", program->string(), std::strerror(errno)));
}

std::optional<std::filesystem::path> libtorch_library(const std::string& name) {
  for (const auto& folder : {own_folder(), own_folder() / REPRISE_LIBRARIES_FROM_COMMAND}) {
    if (std::filesystem::exists(folder / name)) return std::filesystem::canonical(folder / name);
  }
  return std::nullopt;
}

std::string without_libtorch(const std::string& file) {
  return fmt::format(
      "{} is not there, because this reprise was built without LibTorch: build it where LibTorch is "
      "found, or with -DREPRISE_TORCH=ON -DTorch_DIR=...",
      file);
}

}  // namespace reprise::tools
