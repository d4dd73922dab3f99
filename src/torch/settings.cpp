#include "torch/settings.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <array>

namespace reprise::internal {
namespace {

bool flushes_denormals() {
#if defined(__SSE2__)
  constexpr unsigned both = 0x8040;  // denormals are zeros, as operands and as results
  return (_mm_getcsr() & both) == both;
#else
  return false;
#endif
}

struct Flag {
  bool (*get)(const at::Context&);
  void (*set)(at::Context&, bool);
};

constexpr std::array flags = {
    Flag{[](const at::Context&) { return flushes_denormals(); },
         [](at::Context&, bool on) { at::Context::setFlushDenormal(on); }},
    Flag{[](const at::Context& context) { return context.userEnabledMkldnn(); },
         [](at::Context& context, bool on) { context.setUserEnabledMkldnn(on); }},
    Flag{[](const at::Context& context) { return context.deterministicMkldnn(); },
         [](at::Context& context, bool on) { context.setDeterministicMkldnn(on); }},
    Flag{[](const at::Context& context) { return context.deterministicAlgorithms(); },
         [](at::Context& context, bool on) {
           context.setDeterministicAlgorithms(on, context.deterministicAlgorithmsWarnOnly());
         }},
    Flag{[](const at::Context& context) { return context.userEnabledFlashSDP(); },
         [](at::Context& context, bool on) { context.setSDPUseFlash(on); }},
    Flag{[](const at::Context& context) { return context.userEnabledMathSDP(); },
         [](at::Context& context, bool on) { context.setSDPUseMath(on); }},
};

}  // namespace

Settings Settings::now() {
  const at::Context& context = at::globalContext();
  Settings found;
  found.threads_ = static_cast<std::uint16_t>(at::get_num_threads());
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i].get(context)) found.flags_ = static_cast<std::uint16_t>(found.flags_ | (1U << i));
  }
  return found;
}

void Settings::put() const {
  const Settings there = now();
  if (threads_ != there.threads_) at::set_num_threads(threads_);
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const unsigned bit = 1U << i;
    if ((flags_ ^ there.flags_) & bit) flags[i].set(at::globalContext(), (flags_ & bit) != 0);
  }
}

}  // namespace reprise::internal
