#include "report/page_parts.h"

#include <fmt/format.h>

#include "report/svg.h"

namespace reprise::internal {
namespace {

constexpr std::size_t longest_name = 60;

}  // namespace

double PageData::cost_ratio() const {
  const double plain = trace.total_cost();
  return plain > 0 ? simulation().cost / plain : 1;
}

std::string html(std::string_view text) {
  return xml_text(text, longest_name);
}

std::string number(std::string_view key, double value, std::string_view text) {
  return fmt::format(R"(<data data-key="{}" value="{}">{}</data>)", key, value, xml_text(text, 40));
}

std::string number(std::string_view key, Bytes value, std::string_view text) {
  return fmt::format(R"(<data data-key="{}" value="{}">{}</data>)", key, value, xml_text(text, 40));
}

}  // namespace reprise::internal
