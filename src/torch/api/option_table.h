// Every option of a session and of `reprise run`, once: its names, its default, its help, and how its text is read.
//
// `reprise run` and `python -m reprise run` make their flags of this table, the preloaded library reads its variables,
// Python's Session passes its keywords, and docs/tuning.md prints it. A new option is a member of SessionOptions, a row
// here and a keyword of Python's Session; tests name what is missing. The table needs nothing of LibTorch, so that the
// command is built without.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/torch/session.h"
#include "reprise/trace/error.h"
#include "trace/option_text.h"

namespace reprise::internal {

enum class SummaryForm : unsigned char { text, json, none };

// What options ask for.
struct RunSettings {
  SessionOptions session;
  // By operator or modules ("aten::mm", "encoder.*") what is to be done, or the name of a policy and nothing.
  // LibTorch knows which operators there are, so policy_of() makes `session.policy` of it.
  std::vector<std::pair<std::string, std::string>> policy;
  SummaryForm summary = SummaryForm::text;
  std::filesystem::path report, trace;  // empty: none
  bool if_possible = false;
};

struct Option {
  std::string_view name = {};         // the member of SessionOptions; empty: no option of a session
  std::string_view flag = {};         // of `reprise run` and `python -m reprise run`; empty: none
  std::string_view keyword = {};      // of Python's Session; empty: none
  std::string_view placeholder = {};  // of its value in help; empty: the flag has no value, and stands for `flag_means`
  std::string_view flag_means = {};
  bool is_path = false;
  std::string_view standard = {};  // what holds without it
  std::string_view help = {};
  // Reads the value. Throws BadOption that says what the text must be, and no more.
  void (*set)(RunSettings&, const std::string& text) = nullptr;

  // Returns the variable of the environment: REPRISE_PLANNING_TIME for --planning-time, REPRISE_PACK for --no-pack.
  [[nodiscard]] std::string variable() const {
    if (flag.empty()) return {};
    std::string text = "REPRISE_";
    for (const char c : flag.substr(flag.starts_with("--no-") ? 5 : 2)) {
      text += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
    }
    return text;
  }
};

// Reads "cuda:0=8GiB,cpu=none". Which devices there are, only LibTorch can say.
inline std::vector<DeviceBudget> read_device_budgets(const std::string& text) {
  std::vector<DeviceBudget> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw BadOption("'" + one + "' is not DEVICE=AMOUNT, as in cuda:0=8GiB,cpu=2GiB");
    }
    const std::string device = one.substr(0, equals), budget = one.substr(equals + 1);
    if (std::any_of(all.begin(), all.end(), [&](const DeviceBudget& other) { return other.device == device; })) {
      throw BadOption("'" + device + "' has two budgets, and must have one only");
    }
    try {
      all.push_back({device, read_budget(budget)});
    } catch (const BadOption& error) {
      throw BadOption("the budget of '" + device + "' is '" + budget + "', and " + error.what());
    }
    begin = end + 1;
  }
  return all;
}

// Reads "keep_products,encoder.*=evict".
inline std::vector<std::pair<std::string, std::string>> read_policy(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const std::size_t equals = std::min(one.find('='), one.size());
    if (equals == 0) throw BadOption("it must be NAME=CHOICE,..., as in aten::mm=keep,encoder.*=evict");
    all.emplace_back(one.substr(0, equals), one.substr(std::min(equals + 1, one.size())));
    begin = end + 1;
  }
  return all;
}

inline constexpr std::array<std::string_view, 3> verify_words = {"never", "first-time", "always"};
inline constexpr std::array<std::string_view, 3> summary_words = {"text", "json", "none"};
inline constexpr double most_planning_seconds = 1e6;

inline constexpr std::array options_of_run = std::to_array<Option>({
    {.name = "budget",
     .flag = "--budget",
     .keyword = "budget",
     .placeholder = "BUDGET",
     .standard = "none: nothing is limited or evicted, and the summary says what was needed",
     .help = "The most bytes of LibTorch's allocator for the device that may be live: 2GiB, 500MB, a number of bytes, "
             "a share of what the program needs such as 0.4x, which its first two steps measure without a limit, or "
             "none.",
     .set = [](RunSettings& to, const std::string& text) { to.session.budget = read_budget(text); }},
    {.name = "device",
     .flag = "--device",
     .keyword = "device",
     .placeholder = "DEVICE",
     .standard = "the device of the parameters",
     .help = "The device whose bytes the budget limits, by LibTorch's name for it: cpu, cuda:0, npu:0. One that "
             "gets its name only while the program runs is privateuseone:0.",
     .set = [](RunSettings& to, const std::string& text) { to.session.device = text; }},
    {.name = "budgets",
     .flag = "--budgets",
     .keyword = "budgets",
     .placeholder = "DEVICE=BUDGET,...",
     .standard = "one budget",
     .help = "Budgets of several devices at once, instead of budget and device. Plans are made for the first.",
     .set = [](RunSettings& to, const std::string& text) { to.session.budgets = read_device_budgets(text); }},
    {.name = "disk.folder",
     .flag = "--disk",
     .keyword = "disk",
     .placeholder = "FOLDER",
     .is_path = true,
     .standard = "no disk",
     .help = "Offloads values of the CPU to files in this folder, which must exist, where that is cheaper than "
             "recomputing them or the only way. The files are removed at the end.",
     .set = [](RunSettings& to, const std::string& text) { to.session.disk.folder = text; }},
    {.name = "disk.bytes",
     .flag = "--disk-bytes",
     .keyword = "disk_bytes",
     .placeholder = "AMOUNT",
     .standard = "no limit",
     .help = "The most bytes of these files.",
     .set = [](RunSettings& to, const std::string& text) { to.session.disk.bytes = read_bytes(text); }},
    {.name = "host.bytes",
     .flag = "--host",
     .keyword = "host",
     .placeholder = "AMOUNT",
     .standard = "none",
     .help = "Offloads values of the accelerator that device or budgets names to pinned memory of the host, at most "
             "this many bytes for each thread that trains.",
     .set = [](RunSettings& to, const std::string& text) { to.session.host.bytes = read_bytes(text); }},
    {.name = "verify",
     .flag = "--verify",
     .keyword = "verify",
     .placeholder = "WHEN",
     .standard = "first-time",
     .help = "When recomputed values are compared with the evicted ones, bit for bit: never, first-time or always.",
     .set = [](RunSettings& to,
               const std::string& text) { to.session.verify = static_cast<Verify>(read_word(text, verify_words)); }},
    {.name = "pack",
     .flag = "--no-pack",
     .keyword = "pack",
     .flag_means = "off",
     .standard = "on",
     .help = "Packs masks and indices without loss instead of evicting them. Off: they are kept or recomputed.",
     .set = [](RunSettings& to, const std::string& text) { to.session.pack = read_switch(text); }},
    {.name = "planning_share",
     .flag = "--planning-share",
     .keyword = "planning_share",
     .placeholder = "SHARE",
     .standard = "0.05",
     .help = "The CPU time that planning may take, as a share of that of all steps so far. 0: no plans; inf: every "
             "trace is planned at once.",
     .set =
         [](RunSettings& to, const std::string& text) {
           to.session.planning_share = read_number(text, std::numeric_limits<double>::infinity());
         }},
    {.name = "planning_time",
     .flag = "--planning-time",
     .keyword = "planning_seconds",
     .placeholder = "SECONDS",
     .standard = "5",
     .help = "The most time that the planner spends on a plan, on a thread of its own. 0: no plans.",
     .set =
         [](RunSettings& to, const std::string& text) {
           to.session.planning_time =
               std::chrono::milliseconds(std::llround(read_number(text, most_planning_seconds) * 1000));
         }},
    {.name = "plans",
     .flag = "--plans",
     .keyword = "plans",
     .placeholder = "FOLDER",
     .is_path = true,
     .standard = "plans are not kept",
     .help = "Keeps plans in this folder. The next run follows them from its second step on.",
     .set = [](RunSettings& to, const std::string& text) { to.session.plans = text; }},
    {.name = "policy",
     .flag = "--policy",
     .keyword = "policy",
     .placeholder = "NAME=CHOICE,...",
     .standard = "the planner decides everything",
     .help = "Chooses by hand, by operators (aten::mm) or, in a Session that knows the names of modules "
             "(label_modules), by "
             "modules (encoder.*), to keep, evict or pack values, or to "
             "leave them to the planner (automatic); or names a policy: keep_products, pack_random, evict_cheap.",
     .set = [](RunSettings& to, const std::string& text) { to.policy = read_policy(text); }},
    {.name = "evict_everything",
     .flag = "--evict-everything",
     .keyword = "evict_everything",
     .flag_means = "on",
     .standard = "off",
     .help = "Evicts every value that can be recomputed, and recomputes all of it: slow, and the strictest test that a "
             "program is exact.",
     .set = [](RunSettings& to, const std::string& text) { to.session.evict_everything = read_switch(text); }},
    {.name = "name",
     .flag = "--name",
     .keyword = "name",
     .placeholder = "NAME",
     .standard = "session; `reprise run`: reprise",
     .help = "The name of the session in summaries and errors.",
     .set = [](RunSettings& to, const std::string& text) { to.session.name = text; }},
    {.keyword = "end_together",
     .standard = "on",
     .help = "If several processes train together (torch.distributed) and one cannot keep its budget, all of them "
             "raise its BudgetError."},
    {.flag = "--summary",
     .placeholder = "FORM",
     .standard = "text",
     .help = "Prints the summary on stderr at the end: as text, as json, or not at all (none).",
     .set = [](RunSettings& to,
               const std::string& text) { to.summary = static_cast<SummaryForm>(read_word(text, summary_words)); }},
    {.flag = "--report",
     .placeholder = "FILE",
     .is_path = true,
     .standard = "no report",
     .help = "Writes an HTML page about the last step when the program exits. %p in the name becomes the process id.",
     .set = [](RunSettings& to, const std::string& text) { to.report = text; }},
    {.flag = "--trace",
     .placeholder = "FILE",
     .is_path = true,
     .standard = "no trace",
     .help = "Writes the trace of the last step, for `reprise plan`, `curve`, `inspect` and `report`. %p in the name "
             "becomes the process id.",
     .set = [](RunSettings& to, const std::string& text) { to.trace = text; }},
    {.flag = "--if-possible",
     .flag_means = "on",
     .standard = "off",
     .help = "Runs the program without Reprise if it cannot be put under a budget, instead of not at all.",
     .set = [](RunSettings& to, const std::string& text) { to.if_possible = text != "off"; }},
});

// Returns the option with this flag. Throws std::logic_error if there is none.
inline const Option& option_of(std::string_view flag) {
  for (const Option& option : options_of_run) {
    if (option.flag == flag) return option;
  }
  throw std::logic_error("no option has the flag " + std::string(flag));
}

// Returns the help of a flag, with its default.
inline std::string help_of(const Option& option) {
  return std::string(option.help) + " Default: " + std::string(option.standard) + ".";
}

// Reads the value of an option. Throws BadOption that names what it was called, the value and what it must be.
inline void set_option(RunSettings& settings, const Option& option, const std::string& called,
                       const std::string& text) {
  try {
    option.set(settings, text);
  } catch (const BadOption& error) {
    throw BadOption(called + " is '" + text + "': " + error.what());
  }
}

// Reads the options that variables of the environment set. `variable` returns the value of one, null if it is not set;
// an empty value is none. Throws BadOption.
template <class Variable>
void read_variables(RunSettings& settings, const Variable& variable) {
  for (const Option& option : options_of_run) {
    const std::string name = option.variable();
    const char* const value = name.empty() ? nullptr : variable(name.c_str());
    if (value && *value) set_option(settings, option, name, value);
  }
}

// Variables that no program under `reprise run` reads: of the library, and of the scripts and tests of this project.
inline constexpr std::array<std::string_view, 14> other_variables = {
    "REPRISE_HIGHS",        "REPRISE_INSTALL",     "REPRISE_LONG",         "REPRISE_SEED",     "REPRISE_PROGRAMS",
    "REPRISE_FUZZ_SECONDS", "REPRISE_FUZZ_SEED",   "REPRISE_SOAK_SECONDS", "REPRISE_SOAK_KIB", "REPRISE_SOAK_WITHOUT",
    "REPRISE_GRAPHS",       "REPRISE_ACCELERATOR", "REPRISE_ROOT",         "REPRISE_DIR"};

// Throws BadOption that names the nearest variable if one of these ("NAME=value", the last one is null) begins with
// REPRISE_ and is none.
inline void check_variables(const char* const* environment) {
  for (; environment && *environment; ++environment) {
    const std::string_view entry = *environment;
    if (!entry.starts_with("REPRISE_")) continue;
    const std::string_view name = entry.substr(0, entry.find('='));
    std::string nearest;
    for (const Option& option : options_of_run) {
      const std::string known = option.variable();
      if (known.empty()) continue;
      if (nearest.empty() || letters_between(name, known) < letters_between(name, nearest)) nearest = known;
    }
    if (name == nearest || std::find(other_variables.begin(), other_variables.end(), name) != other_variables.end()) {
      continue;
    }
    throw BadOption("the environment has " + std::string(name) + ", which is no variable of Reprise; the nearest is " +
                    nearest);
  }
}

}  // namespace reprise::internal
