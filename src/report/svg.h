// Text that may stand in SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace reprise::internal {

// Escapes what has a meaning there, and leaves out what may not be there at all. At most `longest` characters, the rest
// becomes an ellipsis.
[[nodiscard]] std::string xml_text(std::string_view text, std::size_t longest);

}  // namespace reprise::internal
