// Budgets of several devices in one text: "cuda:0=8GiB,cpu=2GiB".
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"

namespace reprise::tools {

// Throws BadOption that says what is expected. What the devices are, only LibTorch can say.
[[nodiscard]] inline std::vector<std::pair<std::string, Bytes>> parse_device_budgets(const std::string& text) {
  std::vector<std::pair<std::string, Bytes>> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw BadOption("'" + one + "' is not DEVICE=AMOUNT, as in cuda:0=8GiB,cpu=2GiB");
    }
    const std::string device = one.substr(0, equals);
    for (const auto& [name, bytes] : all) {
      if (name == device) throw BadOption("'" + device + "' has two budgets");
    }
    all.emplace_back(device, parse_bytes(one.substr(equals + 1)));
    begin = end + 1;
  }
  return all;
}

}  // namespace reprise::tools
