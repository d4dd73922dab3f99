#include "torch/recipes/settings.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <array>
#include <atomic>
#include <mutex>

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

Settings Settings::with_process_of(const Settings& other) const {
  constexpr unsigned of_thread = 1;  // the first flag: denormals
  Settings both = *this;
  both.flags_ = static_cast<std::uint16_t>((flags_ & of_thread) | (other.flags_ & ~of_thread));
  return both;
}

namespace {

constinit std::mutex mutex;  // of the next two
constinit std::atomic<int> changes = 0;
Settings of_program;  // while there are any

}  // namespace

WithSettings::WithSettings(Settings wanted)
    : before_(Settings::now()), changed_(wanted != before_ || changes.load(std::memory_order_relaxed) > 0) {
  if (!changed_) return;
  const std::lock_guard lock(mutex);
  if (changes.fetch_add(1) == 0) of_program = before_;
  wanted.put();
}

WithSettings::~WithSettings() {
  if (!changed_) return;
  const std::lock_guard lock(mutex);
  const bool is_last = changes.fetch_sub(1) == 1;
  before_.with_process_of(is_last ? of_program : Settings::now()).put();
}

}  // namespace reprise::internal
