#include "compare_document.h"

#include <sstream>

#include "compare_findings.h"

namespace reprise::benchmarks {
namespace {

std::string title_of(const std::string& model) {
  for (const ComparedModel& known : compared_models()) {
    if (known.name == model) return known.title;
  }
  return model;
}

std::string megabytes(Bytes bytes) {
  return fixed(static_cast<double>(bytes) / 1e6, 1) + " MB";
}

// "0.8", and "3e-07" for what is rounding.
std::string error_text(double error) {
  std::ostringstream text;
  text.precision(1);
  error < 0.01 ? text << std::scientific << error : text << std::fixed << error;
  return text.str();
}

std::string results_text(const Measured& measured) {
  std::string text;
  const Soundness sound = soundness(measured);
  if (sound == Soundness::exact) return "bit-equal";
  if (sound == Soundness::wrong_gradients) {
    text = "**WRONG GRADIENTS** (relative error up to " + error_text(*measured.gradient_error) + ")";
  } else if (measured.gradient_error) {
    text = "rounded otherwise (" + error_text(*measured.gradient_error) + ")";
  }
  if (measured.buffers_equal) return text;
  return text + (text.empty() ? "" : ", ") + "**BatchNorm state wrong**";
}

void write_plain(std::ostream& out, const std::string& who, const PlainResult& plain) {
  out << who << ": " << megabytes(plain.peak) << ", " << fixed(range_of(plain.seconds).median, 3)
      << " s of CPU a step, against itself " << text_of(range_of(plain.again));
}

void write_rivals(std::ostream& out, const ModelResult& model) {
  out << "| peak, of plain's | rival | time, of plain's | results | Reprise within that peak | Reprise in that time |\n"
         "|---|---|---|---|---|---|\n";
  for (const Finding& finding : findings_of(model)) {
    const Measured& measured = finding.rival->measured;
    out << "| " << fixed(finding.share, 3) << " | " << finding.rival->rival.label << " | "
        << text_of(range_of(measured.ratios)) << " | " << results_text(measured) << " | ";
    if (finding.at_peak != nullptr) {
      out << text_of(range_of(finding.at_peak->measured.ratios));
    } else {
      out << "no budget was kept";
    }
    out << " | ";
    if (finding.at_time != nullptr) {
      out << "peak " << fixed(share_of_plain(*finding.at_time, model), 3);
    } else {
      out << "none as fast";
    }
    out << " |\n";
  }
  for (const RivalResult& rival : model.rivals) {
    if (!rival.measured.ratios.empty()) continue;
    out << "| | " << rival.rival.label << " | not measured: " << rival.measured.failure << " | | | |\n";
  }
}

void write_reprise(std::ostream& out, const ModelResult& model) {
  out << "| Reprise's budget, of plain's peak | peak | time, of plain's | results |\n|---|---|---|---|\n";
  for (const ReprisePoint& point : model.reprise) {
    out << "| " << fixed(static_cast<double>(point.budget) / static_cast<double>(model.cpp.peak), 3) << " | ";
    if (point.measured.ratios.empty()) {
      out << "| cannot be kept | |\n";
      continue;
    }
    out << fixed(share_of_plain(point, model), 3) << (point.measured.peak > point.budget ? " **above the budget**" : "")
        << " | " << text_of(range_of(point.measured.ratios)) << " | " << results_text(point.measured) << " |\n";
  }
}

void write_model(std::ostream& out, const ModelResult& model) {
  out << "\n## " << title_of(model.model) << " (`" << model.model << "`)\n\n";
  write_plain(out, "Plain LibTorch", model.cpp);
  out << ".";
  if (model.python) {
    write_plain(out, " Plain PyTorch", *model.python);
    out << "; " << fixed(range_of(model.python->seconds).median / range_of(model.cpp.seconds).median, 2)
        << " times LibTorch's time.";
  }
  out << "\n\n";
  write_rivals(out, model);
  out << '\n';
  write_reprise(out, model);
}

constexpr const char* method = R"(
## How it is measured

- The measured work is one training step, forward and backward, on one fixed batch, on one thread.
  Times are CPU time of the process. The models are those of `./bench live`; the Python models are
  the same, word for word.
- Every two steps of any side stand between two plain steps of the same engine: C++ sides between
  plain LibTorch steps, Python sides between plain PyTorch steps. A time is the ratio to the mean of
  these two, so that interpreter overhead cancels out. Tables show the median of the repetitions,
  and the smallest and the largest in brackets. All sides take turns in one run, and their order is
  reversed every other repetition.
- A peak is counted above the level at the start of the step, when parameters exist and gradients do
  not, and is given as a share of the plain peak of the same engine. In C++ it counts the bytes of
  LibTorch's CPU allocator; in Python it counts all bytes of the heap (by a library in front of
  `malloc`), which include the scratch memory of oneDNN and MKL.
- *Reprise within that peak* is a session whose budget is the rival's share of plain's peak less
  0.001, or up to 0.01 less than that where one session serves several rivals. *Reprise in that
  time* is the lowest of its measured peaks that can be reached from there without a slower one than
  the rival in between.
- Freed memory stays with the process on both sides, and numbers too small for a normal float count
  as zero.
- Sessions had 5 seconds for a plan (1 with `--quick`). The times include neither planning nor the
  compilation of `torch.compile`.
- *bit-equal* means that all gradients and buffers equal those of a plain step of the same engine
  from the same seed.
- The line above each table compares plain steps with plain steps, as if they were a rival's, to
  show the noise. *Clearly* faster means that the quartiles of the two times do not overlap.
)";

void write_machine(std::ostream& out, const Results& results) {
  out << "Written by `./bench compare" << results.options << "` on " << results.date << ", " << results.repetitions
      << (results.repetitions == 1 ? " repetition" : " repetitions") << ", on a machine with " << results.cores
      << (results.cores == 1 ? " core" : " cores") << " (" << results.processor << "), load average "
      << fixed(results.load, 1) << " at the start. LibTorch " << results.libtorch << "; ";
  if (results.python_torch.empty()) {
    out << "no Python with torch, so that PyTorch's own ways were not measured (" << results.no_python << ")";
  } else {
    out << "rivals in Python with " << results.python_torch;
  }
  out << ". Running it again writes this page and its picture anew.\n";
}

// A page of half a run must not look like one of a whole one.
void write_missing(std::ostream& out, const Results& results) {
  if (results.models.size() >= results.asked.size()) return;
  out << "\n**The run was broken off. Not measured:**";
  for (std::size_t i = results.models.size(); i < results.asked.size(); ++i) {
    out << (i == results.models.size() ? " " : ", ") << results.asked[i];
  }
  out << ".\n";
}

}  // namespace

std::string to_markdown(const Results& results, const std::string& picture) {
  std::ostringstream out;
  out << "# Against what people use\n\n";
  write_machine(out, results);
  if (results.quick) out << "\nA quick run, to see that it works: these numbers mean little.\n";
  write_missing(out, results);
  out << "\n![Time against peak of Reprise and of its rivals, one panel for each model](" << picture << ")\n\n"
      << verdict(results) << method;
  for (const ModelResult& model : results.models) write_model(out, model);
  return out.str();
}

}  // namespace reprise::benchmarks
