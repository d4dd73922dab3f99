#include "reprise/report/page.h"

#include <fmt/format.h>

#include "report/curve_picture.h"
#include "report/page_parts.h"
#include "report/svg.h"
#include "report/words.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"
#include "trace/json_file.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::size_t columns_drawn = 240;
constexpr std::size_t longest_page_title = 120;
constexpr SimulateOptions everything_recorded{.record_live = true, .check_budget = true, .record_residences = true};

PageData data_of(const PageInput& input) {
  if (!input.trace) throw BadInput("", "trace", "there is none: a page is about a trace");
  const Trace& trace = *input.trace;
  PageData data{.input = input,
                .trace = trace,
                .everything = keep_everything(trace),
                .before = {},
                .after = {},
                .columns_before = {},
                .columns_after = {},
                .inspection = inspect(trace),
                .fates = {}};
  data.before = simulate(trace, data.everything, everything_recorded);
  data.columns_before = columns_of(trace, data.everything, data.before, columns_drawn);
  if (input.plan) {
    data.after = simulate(trace, *input.plan, everything_recorded);
    if (input.summary && data.after->broken && data.after->broken->rule == Rule::budget) {
      // The plan that steps follow, and that other bytes have outgrown.
      data.after =
          simulate(trace, *input.plan, {.record_live = true, .check_budget = false, .record_residences = true});
    }
    if (data.after->broken) throw BadInput("", "plan", data.after->broken->sentence);
    data.columns_after = columns_of(trace, *input.plan, *data.after, columns_drawn);
  }
  data.fates = fates_of(trace, data.everything, data.before, data.plan(), data.simulation());
  return data;
}

std::string title_of(const PageInput& input) {
  return xml_text(input.title.empty() ? name_of(*input.trace) : input.title, longest_page_title);
}

// What the page is about, before anything else is said.
std::string header(const PageData& data) {
  const Inspection& inspection = data.inspection;
  std::string counts = count(inspection.operators, "operator");
  if (inspection.events > 0) counts += ", " + count(inspection.events, "event");
  counts += ", " + count(inspection.values, "value");
  return fmt::format("<header>\n<p class=\"over\">Reprise</p>\n<h1>{}</h1>\n<p class=\"soft\">{}</p>\n</header>\n",
                     title_of(data.input), counts);
}

}  // namespace

std::string to_html(const PageInput& input) {
  const PageData data = data_of(input);
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", page_policy());
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n";
  page += fmt::format("<title>{}: memory report</title>\n<style>{}</style>\n", title_of(input), page_style());
  if (input.curve) page += fmt::format("<style>{}</style>\n", curve_style());
  page += "</head>\n<body>\n";
  page += header(data) + "<main>\n" + headline(data) + memory_section(data) + curve_section(data) +
          values_section(data) + lower_section(data) + definitions() + "</main>\n";
  page += "<script type=\"application/json\" id=\"reprise-numbers\">" + page_numbers(data) + "</script>\n";
  page += fmt::format("<script>{}</script>\n</body>\n</html>\n", page_script());
  return page;
}

void write_page(const std::filesystem::path& path, const PageInput& input) {
  write_text(path, to_html(input));
}

}  // namespace reprise
