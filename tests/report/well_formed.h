// Whether a text is well-formed XML, as far as our pictures use it.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::testing {

// Empty if it is; otherwise what is wrong.
inline std::string xml_problem(std::string_view text) {
  std::vector<std::string> open;
  bool style = false;  // its text is for another language
  std::size_t roots = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '<') {
      if (text[i] == '&' && !style) {
        const std::string_view rest = text.substr(i, 6);
        if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") && rest != "&quot;") {
          return "unknown entity: " + std::string(rest);
        }
      }
      if (open.empty() && !std::isspace(static_cast<unsigned char>(text[i]))) return "text outside the root";
      ++i;
      continue;
    }
    const std::size_t end = text.find('>', i);
    if (end == std::string_view::npos) return "a tag without an end";
    std::string_view tag = text.substr(i + 1, end - i - 1);
    i = end + 1;
    const bool closing = tag.starts_with('/'), empty = tag.ends_with('/');
    if (closing) tag.remove_prefix(1);
    if (empty) tag.remove_suffix(1);
    const std::string name(tag.substr(0, tag.find(' ')));
    if (closing) {
      if (open.empty() || open.back() != name) return "closed but not open: " + name;
      open.pop_back();
      style = false;
      continue;
    }
    if (open.empty() && ++roots > 1) return "a second root: " + name;
    for (std::string_view rest = tag.substr(name.size()); !rest.empty();) {
      const std::size_t equals = rest.find("=\"");
      if (rest[0] != ' ' || equals == std::string_view::npos) return "no attribute: " + std::string(rest);
      const std::size_t quote = rest.find('"', equals + 2);
      if (quote == std::string_view::npos) return "an attribute without an end: " + std::string(rest);
      rest.remove_prefix(quote + 1);
    }
    if (!empty) open.push_back(name);
    style = name == "style" && !empty;
  }
  if (!open.empty()) return "not closed: " + open.back();
  return roots == 1 ? "" : "no root";
}

}  // namespace reprise::testing
