// reprise example: something to see without a file.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "command.h"
#include "curve_command.h"
#include "example_trace.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/files.h"

namespace reprise::tools {
namespace {

constexpr std::chrono::duration<double> time_limit = std::chrono::seconds(6);

constexpr const char* example_summary = "show the curve of a built-in example";

constexpr const char* example_description =
    "Plans one training step of a network like GPT-2 medium (24 layers, 8 sequences of 512 tokens, Adam) for "
    "several budgets and prints the overhead of each. Takes six seconds.";

constexpr const char* example_footer = R"(Examples:
  reprise example
  reprise example --output example.json
  reprise inspect example.json

Exit codes:
  0  done
  2  wrong usage, a file that cannot be written
)";

std::string introduction(const Trace& trace, const Curve& curve) {
  return fmt::format(
      "One training step of a 24-layer GPT (8 x 512 tokens, Adam): {} operators forward, {} events backward.\n"
      "Keeping everything takes {}. With less memory, values are evicted and replayed, which takes time:\n\n",
      trace.operators.size(), trace.moments.size() - trace.operators.size(), format_bytes(curve.keep_everything_peak));
}

std::string what_next(const std::string& file, bool saved) {
  const char* const first = saved ? "" : "  reprise example --output example.json   this trace as a file\n";
  return fmt::format(
      "\nTry next:\n{}"
      "  reprise inspect {}\n"
      "  reprise plan {} --budget 0.5x\n"
      "  reprise curve {} --time-limit 60 --output curve.svg\n",
      first, file, file, file);
}

int run_example(const std::optional<std::filesystem::path>& output) {
  const Trace trace = example_trace();
  if (output) save([&] { write_trace(*output, trace); });
  CurveOptions options;
  options.time_limit = time_limit;
  const Curve curve = curve_with_progress(trace, options);
  print_out(introduction(trace, curve) + curve_text(curve) +
            what_next(output ? shown(*output) : "example.json", !!output));
  return exit_done;
}

}  // namespace

void add_example(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "example", example_summary, example_description, example_footer);
  const auto output = std::make_shared<std::optional<std::filesystem::path>>();
  command->add_option("--output", *output, "Also write the example's trace to this file.")->type_name("FILE");
  command->callback([output, &run] { run = [output] { return run_example(*output); }; });
}

}  // namespace reprise::tools
