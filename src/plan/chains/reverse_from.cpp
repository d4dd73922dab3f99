#include <fmt/format.h>

#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"

namespace reprise {
namespace {

void check_remembered(std::span<const std::int32_t> remembered, std::int32_t layers, std::int32_t slots) {
  if (layers < 0) throw BadOption(fmt::format("layers is {}: it cannot be negative", layers));
  if (remembered.empty()) throw BadOption("remembered is empty: state 0 has to be among the remembered states");
  if (remembered.front() != 0) {
    throw BadOption(fmt::format("remembered starts with state {}: it has to start with 0", remembered.front()));
  }
  for (std::size_t i = 1; i < remembered.size(); ++i) {
    if (remembered[i - 1] < remembered[i]) continue;
    throw BadOption(fmt::format("remembered has state {} before state {}: they have to be ascending", remembered[i - 1],
                                remembered[i]));
  }
  if (remembered.back() > layers) {
    throw BadOption(fmt::format("remembered ends with state {}: there are only {} layers", remembered.back(), layers));
  }
  if (slots < 0 || static_cast<std::size_t>(slots) < remembered.size()) {
    throw BadOption(fmt::format("slots is {}: {} states are remembered", slots, remembered.size()));
  }
}

// Backward of one stretch after the other, each from a remembered state to the next one or the end, the last one first.
class ReverseSource final : public ChainStepSource {
 public:
  ReverseSource(std::span<const std::int32_t> remembered, std::int32_t layers, std::int32_t slots)
      : remembered_(remembered.begin(), remembered.end()), layers_(layers), end_(layers), slots_(slots) {}

  std::optional<ChainStep> next() override {
    ChainStep step;
    return fill({&step, 1}) > 0 ? std::optional(step) : std::nullopt;
  }

  std::size_t fill(std::span<ChainStep> room) override {
    std::size_t count = 0;
    while (count < room.size()) {
      if (stretch_) {
        const std::size_t got = stretch_->fill(room.subspan(count));
        for (ChainStep& step : room.subspan(count, got)) step.at += first_;
        count += got;
        if (count < room.size()) stretch_.reset();
      } else if (remembered_.empty()) {
        break;
      } else {
        room[count++] = begin_stretch();
      }
    }
    return count;
  }

 private:
  ChainStep begin_stretch() {
    first_ = remembered_.back();
    remembered_.pop_back();
    if (first_ == layers_) return {ChainStep::Kind::discard, first_};
    stretch_ = reverse_stretch(end_ - first_, slots_ - static_cast<std::int32_t>(remembered_.size()));
    end_ = first_;
    return {ChainStep::Kind::load, first_};
  }

  // Returns the steps after loading the state that a stretch begins with, which is in one of the slots.
  [[nodiscard]] static std::unique_ptr<ChainStepSource> reverse_stretch(std::int32_t layers, std::int32_t slots) {
    if (layers == 1) return std::make_unique<OneLayer>();
    // Revolve begins with storing its initial state and ends with discarding it. Here it is stored already.
    auto source = revolve_source(layers, slots);
    (void)source->next();
    return source;
  }

  class OneLayer final : public ChainStepSource {
   public:
    std::optional<ChainStep> next() override {
      switch (done_++) {
        case 0: return ChainStep{ChainStep::Kind::tape, 1};
        case 1: return ChainStep{ChainStep::Kind::backward, 1};
        case 2: return ChainStep{ChainStep::Kind::discard, 0};
        default: return std::nullopt;
      }
    }

   private:
    int done_ = 0;
  };

  std::vector<std::int32_t> remembered_;  // the stretches from these on are left
  const std::int32_t layers_;
  std::int32_t end_;  // of the stretch that is next
  const std::int32_t slots_;
  std::int32_t first_ = 0;  // of the stretch that goes on
  std::unique_ptr<ChainStepSource> stretch_;
};

}  // namespace

std::unique_ptr<ChainStepSource> reverse_source(std::span<const std::int32_t> remembered, std::int32_t layers,
                                                std::int32_t slots) {
  check_remembered(remembered, layers, slots);
  return std::make_unique<ReverseSource>(remembered, layers, slots);
}

ChainSteps reverse_from(std::span<const std::int32_t> remembered, std::int32_t layers, std::int32_t slots) {
  return all_steps(*reverse_source(remembered, layers, slots));
}

}  // namespace reprise
