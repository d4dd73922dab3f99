#include "reprise/torch/policy.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "reprise/trace/error.h"
#include "torch/libtorch/version_check.h"
#include "torch/recipes/operator_table.h"
#include "trace/option_text.h"

namespace reprise::policy {
namespace {

constexpr std::array<std::string_view, 16> products{
    "aten::addbmm",        "aten::addmm",  "aten::addmv",       "aten::addr",
    "aten::baddbmm",       "aten::bmm",    "aten::convolution", "aten::dot",
    "aten::_convolution",  "aten::linear", "aten::matmul",      "aten::mkldnn_convolution",
    "aten::mkldnn_linear", "aten::mm",     "aten::mv",          "aten::_trilinear",
};

bool is_product(const PolicyOperator& op) {
  const std::string_view name = op.plain_name();
  return std::find(products.begin(), products.end(), name) != products.end() ||
         name.find("scaled_dot_product") != std::string_view::npos;
}

std::string full_name(const c10::OperatorName& operator_name) {
  return operator_name.overload_name.empty() ? operator_name.name
                                             : operator_name.name + "." + operator_name.overload_name;
}

// "; near are aten::tan, aten::tanh", or nothing.
std::string near_names(const std::string& name) {
  constexpr std::size_t most = 3;
  const std::size_t too_many = std::max<std::size_t>(3, name.size() / 4);
  const bool wants_overload = name.find('.') != std::string::npos;
  std::set<std::pair<std::size_t, std::string>> near;
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames()) {
    std::string other = wants_overload ? full_name(known) : known.name;
    const std::size_t distance = internal::letters_between(name, other);
    if (distance < too_many) near.emplace(distance, std::move(other));
    if (near.size() > most) near.erase(std::prev(near.end()));
  }
  std::string text;
  for (const auto& [distance, other] : near) text += (text.empty() ? "; near are " : ", ") + other;
  return text;
}

// Throws unless a session asks about it. Overloads that write into an argument (aten::linear.out) do not count beside
// those that do not: autograd saves nothing of theirs.
void check_operator(const std::string& name) {
  using internal::OperatorInfo;
  if (!internal::runs_as_compiled()) return;  // another LibTorch, which is left alone; no session begins there
  bool exists = false, composed = false, writes = false, others = false;
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames()) {
    if (known.name != name && full_name(known) != name) continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(known);
    if (!handle) continue;
    exists = true;
    const OperatorInfo::Kind kind = internal::find_operator(*handle).kind;
    const auto& arguments = handle->schema().arguments();
    const bool has_out = std::any_of(arguments.begin(), arguments.end(), [](const auto& one) { return one.is_out(); });
    if (has_out && known.name == name) {
      writes |= kind == OperatorInfo::Kind::recorded;
      continue;
    }
    if (kind == OperatorInfo::Kind::recorded) return;
    others = true;
    composed |= kind == OperatorInfo::Kind::transparent;
  }
  if (writes && !others) return;
  const std::string what = "[session] option policy has '" + name + "': ";
  if (!exists) {
    throw BadOption(what + "LibTorch has no operator of this name" + near_names(name) +
                    ". An operator of your own has to be defined before the policy is made");
  }
  throw BadOption(what + (composed ? "it is composed of other operators, which are recorded in its place. Name these: "
                                     "the trace of a session has their names"
                                   : "it makes no values that could be kept, evicted or packed"));
}

}  // namespace

Policy by_names(const std::vector<std::pair<std::string, Choice>>& rules, Policy otherwise) {
  std::vector<std::pair<std::string, Choice>> operators, modules;
  for (const auto& [name, choice] : rules) {
    if (name.find("::") != std::string::npos) {
      check_operator(name);
      operators.emplace_back(name, choice);
    } else if (name.ends_with("*")) {
      modules.emplace_back(name.substr(0, name.size() - 1), choice);
    } else {
      throw BadOption("[session] option policy has '" + name +
                      "': it must be an operator ('aten::mm') or modules ('encoder.*')");
    }
  }
  return [operators, modules, otherwise](const PolicyOperator& op) {
    for (const auto& [name, choice] : operators) {
      if (name == op.name || name == op.plain_name()) return choice;
    }
    for (const auto& [prefix, choice] : modules) {
      if (!op.module.empty() && op.module.starts_with(prefix)) return choice;
    }
    return otherwise ? otherwise(op) : Choice::automatic;
  };
}

Policy keep_products() {
  return [](const PolicyOperator& op) { return is_product(op) ? Choice::keep : Choice::automatic; };
}

Policy pack_random() {
  return [](const PolicyOperator& op) { return op.random ? Choice::pack : Choice::automatic; };
}

Policy evict_cheap(double seconds_per_mebibyte) {
  if (!(seconds_per_mebibyte >= 0)) {
    throw BadOption("[session] policy evict_cheap: " + std::to_string(seconds_per_mebibyte) +
                    " seconds per mebibyte: it must not be negative");
  }
  return [=](const PolicyOperator& op) {
    const double mebibytes = static_cast<double>(op.bytes) / (1 << 20);
    return op.seconds && *op.seconds < seconds_per_mebibyte * mebibytes ? Choice::evict : Choice::automatic;
  };
}

Policy first_of(std::vector<Policy> policies) {
  return [all = std::move(policies)](const PolicyOperator& op) {
    for (const Policy& one : all) {
      if (const Choice choice = one(op); choice != Choice::automatic) return choice;
    }
    return Choice::automatic;
  };
}

}  // namespace reprise::policy
