#include "torch/api/named_policies.h"

#include <array>

#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

constexpr std::array<std::pair<std::string_view, Choice>, 4> choices = {
    {{"keep", Choice::keep}, {"evict", Choice::evict}, {"pack", Choice::pack}, {"automatic", Choice::automatic}}};

Choice choice_of(const std::string& name, const std::string& choice) {
  for (const auto& [known, value] : choices) {
    if (choice == known) return value;
  }
  throw BadOption("[session] option policy has '" + choice + "' for '" + name +
                  "': it must be keep, evict, pack or automatic");
}

}  // namespace

Policy policy_of(const std::vector<std::pair<std::string, std::string>>& rules) {
  if (rules.empty()) return {};
  std::vector<std::pair<std::string, Choice>> named;
  std::vector<Policy> policies;
  for (const auto& [name, choice] : rules) {
    if (name == "keep_products") {
      policies.push_back(policy::keep_products());
    } else if (name == "pack_random") {
      policies.push_back(policy::pack_random());
    } else if (name == "evict_cheap") {
      policies.push_back(policy::evict_cheap());
    } else if (name.find("::") == std::string::npos && !name.ends_with("*")) {
      throw BadOption("[session] option policy has '" + name +
                      "': it must be an operator ('aten::mm'), modules ('encoder.*'), or one of keep_products, "
                      "pack_random, evict_cheap");
    } else {
      named.emplace_back(name, choice_of(name, choice));
    }
  }
  return policy::by_names(named, policy::first_of(std::move(policies)));
}

}  // namespace reprise::internal
