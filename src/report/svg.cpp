#include "report/svg.h"

#include "trace/json_text.h"
#include "trace/printable.h"

namespace reprise::internal {

std::string xml_text(std::string_view text, std::size_t longest) {
  std::string result;
  for (std::size_t characters = 0; !text.empty(); ++characters) {
    if (characters == longest) return result + "…";
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    const bool no_character = character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf";  // U+FFFE and U+FFFF
    if (!is_printable(character) || no_character) {
      result += '?';
    } else if (character == "&") {
      result += "&amp;";
    } else if (character == "<") {
      result += "&lt;";
    } else if (character == ">") {
      result += "&gt;";
    } else if (character == "\"") {
      result += "&quot;";
    } else {
      result += character;
    }
  }
  return result;
}

}  // namespace reprise::internal
