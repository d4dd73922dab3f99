// The text that is learned from unless another is given. Without LibTorch, so that it is compiled at once.
#pragma once

#include <string_view>

namespace reprise::tools {

// The documentation of Reprise, as it was when this was built.
[[nodiscard]] std::string_view own_documentation();

}  // namespace reprise::tools
