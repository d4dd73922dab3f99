#include "plan/chains/online_chain.h"

#include <fmt/format.h>

#include <limits>

#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"

namespace reprise::internal {

// See revolve_steps for the numbers: reach is (slots + sweeps) over slots, and the fewest steps are
// (sweeps + 1) * layers less (slots + sweeps) over (slots + 1).
OnlineChain::Reversal::Reversal(std::int64_t layers, std::int64_t slots) : layers_(layers), slots_(slots) {
  while (reach_ < layers_) sweep_once_more();
  steps_ = (sweeps_ + 1) * layers_ - reach_ * sweeps_ / (slots_ + 1);
}

void OnlineChain::Reversal::sweep_once_more() {
  ++sweeps_;
  reach_ = reach_ * (slots_ + sweeps_) / sweeps_;
}

void OnlineChain::Reversal::grow() {
  if (++layers_ > reach_) sweep_once_more();
  steps_ += sweeps_ + 1;
}

OnlineChain::OnlineChain(std::int32_t slots) : slots_(slots) {
  if (slots < 1) throw BadOption(fmt::format("slots is {}: it has to be at least 1", slots));
}

OnlineChain::Decision OnlineChain::advance() {
  if (reached_ == std::numeric_limits<std::int32_t>::max()) {
    throw BadOption(fmt::format("reached is {}: a chain cannot have more layers", reached_));
  }
  ++reached_;
  if (remembered_.size() < static_cast<std::size_t>(slots_)) {
    remembered_.push_back(reached_);
    remembered_changed();
    return {.store = true, .discard = {}};
  }
  if (slots_ == 1) return {};

  last_.grow();
  last_two_.grow();
  // The steps for what comes after the last remembered state if the chain ends here: with the one slot of that state,
  // and with the state just reached in the slot of the one that is missed least. One layer later the first grows by one
  // for each layer behind the state, the second by the one layer behind the state just reached.
  const std::int64_t behind = reached_ - remembered_.back();
  const std::int64_t as_it_is = behind * (behind + 1) / 2;
  std::int64_t exchanged = last_two_.steps() - before_last_;
  std::size_t position = remembered_.size() - 1;
  if (victim_ && victim_->loss + last_.steps() <= exchanged) {
    exchanged = victim_->loss + last_.steps();
    position = victim_->position;
  }
  if (exchanged + (exchanged + 1) >= as_it_is + (as_it_is + behind + 1)) return {};

  const auto evicted = remembered_.begin() + static_cast<std::ptrdiff_t>(position);
  const std::int32_t discard = *evicted;
  remembered_.erase(evicted);
  remembered_.push_back(reached_);
  remembered_changed();
  return {.store = true, .discard = discard};
}

void OnlineChain::remembered_changed() {
  if (remembered_.size() < static_cast<std::size_t>(slots_) || slots_ == 1) return;
  victim_ = least_missed();
  last_ = Reversal(0, 2);
  last_two_ = Reversal(remembered_.back() - remembered_[remembered_.size() - 2], 2);
  before_last_ = last_two_.steps();
}

// Without a state its stretch is joined to the one before it, and every later stretch has a slot more.
std::optional<OnlineChain::Victim> OnlineChain::least_missed() const {
  std::optional<Victim> least;
  // Where there are many slots most stretches are short: Reversal would say the same, with divisions.
  const auto steps = [](std::int64_t layers, std::int64_t slots) {
    if (layers <= slots + 1) return 2 * layers - 1;
    if (layers <= (slots + 1) * (slots + 2) / 2) return 3 * layers - (slots + 2);
    return Reversal(layers, slots).steps();
  };
  const std::size_t last = remembered_.size() - 1;
  std::int64_t saved_later = 0;
  std::int64_t behind = steps(remembered_[last] - remembered_[last - 1], 2);
  for (std::size_t i = last - 1; i >= 1; --i) {
    const std::int64_t slots = slots_ - static_cast<std::int64_t>(i);
    const std::int64_t before = steps(remembered_[i] - remembered_[i - 1], slots + 1);
    const std::int64_t joined = steps(remembered_[i + 1] - remembered_[i - 1], slots + 1);
    const std::int64_t loss = joined - before - behind - saved_later;
    if (!least || loss <= least->loss) least = Victim{i, loss};
    saved_later += behind - steps(remembered_[i + 1] - remembered_[i], slots + 1);
    behind = before;
  }
  return least;
}

ChainSteps OnlineChain::finish() const {
  return all_steps(*finish_source());
}

std::unique_ptr<ChainStepSource> OnlineChain::finish_source() const {
  return reverse_source(remembered_, reached_, slots_);
}

}  // namespace reprise::internal
