// reprise doctor, up to LibTorch.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <thread>

#include "doctor_options.h"
#include "libtorch_program.h"
#include "plan/bounds/highs.h"
#include "program.h"
#include "reprise/trace/amount.h"

namespace reprise::tools {
using namespace internal;
namespace {

using State = Finding::State;

Finding machine() {
  utsname system{};
  (void)uname(&system);
  const Bytes memory = Bytes{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return {State::fact, "machine",
          fmt::format("{} {}, {} cores, {} of memory", system.sysname, system.machine,
                      std::thread::hardware_concurrency(), format_bytes(memory)),
          ""};
}

Finding solver() {
  if (solver_available()) return {State::good, "HiGHS", "found: plans come with lower bounds", ""};
  return {State::poor, "HiGHS", "not found: planning works, lower bounds are weaker",
          "pip install highsbox, and set REPRISE_HIGHS to its libhighs.so; ./run does that by itself"};
}

Finding preload() {
  const auto library = libtorch_library("libreprise_preload.so");
  if (const auto why_not = library ? preload_obstacle(*library) : std::nullopt) {
    return {State::bad, "reprise run", *why_not, ""};
  }
  if (library && libtorch_library("libreprise_live.so")) {
    return {State::good, "reprise run", "programs can be put under a budget with " + library->string(), ""};
  }
  return {State::bad, "reprise run", "libreprise_preload.so or libreprise_live.so is missing",
          without_libtorch("the library")};
}

int examine(const DoctorOptions& options) {
  std::vector<Finding> findings = {{State::fact, "reprise", REPRISE_VERSION, ""}, machine(), solver()};
  const bool with_libtorch = libtorch_program().has_value();
  if (with_libtorch) {
    findings.push_back(preload());
  } else {
    findings.push_back({State::bad, "LibTorch", "this reprise was built without it: it plans, but does not train",
                        without_libtorch("reprise-torch")});
  }
  print_out(to_text(findings, options));
  return with_libtorch && exit_code(findings) == exit_done ? go_on_in_libtorch_program() : exit_code(findings);
}

}  // namespace

void add_doctor(CLI::App& app, Run& run) {
  const auto options = std::make_shared<DoctorOptions>();
  add_doctor_command(app, options, [options, &run] { run = [options] { return examine(*options); }; });
}

}  // namespace reprise::tools
