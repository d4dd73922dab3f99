#include "reprise/torch/policy.h"

#include <algorithm>
#include <array>
#include <string>

#include "reprise/trace/error.h"

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

}  // namespace

Policy keep_products() {
  return [](const PolicyOperator& op) { return is_product(op) ? Choice::keep : Choice::decide; };
}

Policy pack_random() {
  return [](const PolicyOperator& op) { return op.random ? Choice::pack : Choice::decide; };
}

Policy forget_cheap(double seconds_per_mebibyte) {
  if (!(seconds_per_mebibyte >= 0)) {
    throw BadOption("[session] policy forget_cheap: " + std::to_string(seconds_per_mebibyte) +
                    " seconds per mebibyte: it must not be negative");
  }
  return [=](const PolicyOperator& op) {
    const double mebibytes = static_cast<double>(op.bytes) / (1 << 20);
    return op.seconds && *op.seconds < seconds_per_mebibyte * mebibytes ? Choice::forget : Choice::decide;
  };
}

Policy first_of(std::vector<Policy> policies) {
  return [all = std::move(policies)](const PolicyOperator& op) {
    for (const Policy& one : all) {
      if (const Choice choice = one(op); choice != Choice::decide) return choice;
    }
    return Choice::decide;
  };
}

}  // namespace reprise::policy
