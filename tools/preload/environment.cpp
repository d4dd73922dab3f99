#include "preload/environment.h"

#include <sys/auxv.h>
#include <unistd.h>

#include "torch/api/named_policies.h"

namespace reprise::preload {
using namespace internal;

std::filesystem::path with_process(const std::string& name, int process) {
  std::string result = name;
  for (std::size_t at = result.find("%p"); at != std::string::npos; at = result.find("%p", at)) {
    result.replace(at, 2, std::to_string(process));
  }
  return result;
}

RunSettings read_environment() {
  RunSettings settings;
  settings.session.name = "reprise";
  if (getauxval(AT_SECURE) == 0) check_variables(environ);
  read_variables(settings, [](const char* name) { return secure_getenv(name); });
  settings.session.policy = policy_of(settings.policy);
  settings.report = with_process(settings.report, getpid());
  settings.trace = with_process(settings.trace, getpid());
  return settings;
}

}  // namespace reprise::preload
