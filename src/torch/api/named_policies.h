// Policies by names, for those who have no functions: the command line, the environment and Python.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reprise/torch/policy.h"

namespace reprise::internal {

// Returns the policy of rules such as {"aten::mm", "keep"}, {"encoder.*", "evict"} and, without a choice,
// {"keep_products", ""}. Empty without rules. Throws BadOption.
[[nodiscard]] Policy policy_of(const std::vector<std::pair<std::string, std::string>>& rules);

}  // namespace reprise::internal
