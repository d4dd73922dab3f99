// Steps that are found, in programs that do not know of Reprise: `python -m reprise run`.
#include <pybind11/stl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "bindings_of.h"
#include "reprise/plan/curve.h"
#include "reprise/report/page.h"
#include "reprise/report/summary.h"
#include "torch/api/named_policies.h"
#include "torch/api/option_table.h"
#include "torch/hooks/automatic.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

// The summary as text and as JSON, and the trace.
std::optional<std::tuple<std::string, std::string, std::optional<Trace>>> found() {
  const auto outcome = internal::automatic::outcome();
  if (!outcome) return std::nullopt;
  return std::tuple(to_text(outcome->summary), json_line(outcome->summary), outcome->trace);
}

// Begins with these flags and the environment, as `reprise run` does. Returns what is asked for at the end.
std::map<std::string, std::string> find_steps(const std::map<std::string, std::string>& flags) {
  internal::check_variables(environ);
  internal::RunSettings settings;
  settings.session.name = "reprise";
  internal::read_variables(settings, [](const char* name) { return secure_getenv(name); });
  for (const internal::Option& option : internal::options_of_run) {
    const auto given = flags.find(std::string(option.flag));
    if (given != flags.end()) internal::set_option(settings, option, given->first, given->second);
  }
  if (settings.session.disk.bytes != DiskOffload().bytes && settings.session.disk.folder.empty()) {
    throw BadOption("--disk-bytes is about a disk, and there is none: name its folder with --disk");
  }
  settings.session.policy = internal::policy_of(settings.policy);
  internal::automatic::begin(settings.session);
  const auto file = [](std::string name) {
    for (std::size_t at = name.find("%p"); at != std::string::npos; at = name.find("%p", at)) {
      name.replace(at, 2, std::to_string(getpid()));
    }
    return name.empty() ? name : std::filesystem::absolute(name).string();
  };
  return {{"summary", std::string(internal::summary_words[static_cast<std::size_t>(settings.summary)])},
          {"report", file(settings.report)},
          {"trace", file(settings.trace)}};
}

void write_report_of_found(const std::string& path) {
  const auto outcome = internal::automatic::outcome();
  if (!outcome || !outcome->trace) return;
  CurveOptions options;
  options.time_limit = std::chrono::seconds(5);
  const Curve curve = make_curve(*outcome->trace, options);
  write_page(path, {.title = "Reprise",
                    .trace = &*outcome->trace,
                    .plan = outcome->plan ? &*outcome->plan : nullptr,
                    .curve = &curve,
                    .summary = &outcome->summary});
}

py::list options_of_run() {
  py::list all;
  for (const internal::Option& option : internal::options_of_run) {
    py::dict one;
    one["name"] = option.name;
    one["flag"] = option.flag;
    one["variable"] = option.variable();
    one["keyword"] = option.keyword;
    one["placeholder"] = option.placeholder;
    one["flag_means"] = option.flag_means;
    one["default"] = option.standard;
    one["help"] = option.help;
    all.append(one);
  }
  return all;
}

}  // namespace

void add_found_steps(py::module_& module) {
  using NoInterpreter = py::call_guard<py::gil_scoped_release>;
  module.def("options_of_run", &options_of_run);
  module.def("find_steps", &find_steps, py::arg("flags"), NoInterpreter());
  module.def("write_report_of_found", &write_report_of_found, py::arg("path"), NoInterpreter());
  module.def("found", &found, NoInterpreter());
}

}  // namespace reprise::python
