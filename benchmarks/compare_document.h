// The page of ./bench compare, and its picture.
#pragma once

#include <string>

#include "compare_results.h"

namespace reprise::benchmarks {

// Markdown. `picture` is the name of the picture's file, beside the page.
[[nodiscard]] std::string to_markdown(const Results&, const std::string& picture);

// One panel for each model: peak to the right, time upwards. Rivals whose results are wrong are crossed out.
[[nodiscard]] std::string to_svg(const Results&);

}  // namespace reprise::benchmarks
