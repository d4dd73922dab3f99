#include "plan/chain_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plan/rebuild.h"
#include "plan/turn.h"
#include "reprise/trace/error.h"

namespace reprise {
namespace {

constexpr Id no_layer = -1;

// Forward is cut before this moment; the value crosses.
struct Cut {
  Id before = 0;
  std::optional<Id> state;
};

// A moment of backward that needs a value out of order.
struct Misfit {
  Id moment = 0, value = 0, layer = 0, due = 0;
};

// Makes layers out of cuts. Layers are counted from 0 in here.
class Shaper {
 public:
  Shaper(const Trace& trace, const Timeline& timeline, Id turn, std::vector<Cut> cuts)
      : trace_(trace), timeline_(timeline), turn_(turn), cuts_(std::move(cuts)) {
    const auto can_rebuild = rebuildable(trace, timeline);
    always_kept_.assign(trace.values.size(), 1);
    for (Id v = 0; v < trace.value_count(); ++v) {
      const Id made = timeline.made_at(v);
      const auto& held = trace.values[v].held;
      if (made == nowhere || made >= turn) continue;
      always_kept_[v] = !can_rebuild[v] || (held && held->last >= turn);
    }
    // A state that is gone when its layer's successor has run cannot be remembered.
    std::erase_if(cuts_, [&](const Cut& cut) { return cut.state && timeline.taken_at(*cut.state) != nowhere; });
  }

  Chain shape() {
    do {
      lay_out();
      give_backward_to_layers();
      keep_what_is_needed_out_of_order();
    } while (join_layers_without_backward());
    fill_tapes();
    find_input();
    return std::move(chain_);
  }

  // The first moment of backward that needs a value out of order; the last layer's values are free to be needed later.
  [[nodiscard]] const std::optional<Misfit>& misfit() const { return misfit_; }

 private:
  void lay_out() {
    chain_ = {turn_, {}, std::nullopt, always_kept_};
    layer_of_.assign(trace_.values.size(), no_layer);
    last_reader_.assign(trace_.values.size(), no_layer);
    is_state_.assign(trace_.values.size(), 0);
    Id first = 0;
    const auto add = [&](Id end, std::optional<Id> state) {
      const Id layer = static_cast<Id>(chain_.layers.size());
      for (Id m = first; m < end; ++m) {
        for (const Id v : trace_.outputs(m)) layer_of_[v] = layer;
        for (const Id v : trace_.inputs(m)) last_reader_[v] = layer;
      }
      if (state && !always_kept_[*state]) is_state_[*state] = 1;
      chain_.layers.push_back({first, end, state, {}, false, false, 0, 0});
      first = end;
    };
    for (const Cut& cut : cuts_) add(cut.before, cut.state);
    if (turn_ > 0) add(turn_, std::nullopt);
    keep_what_is_held_from_a_later_layer_on();
  }

  // For the program to take hold of a value is no input of any moment, but needs the value all the same.
  void keep_what_is_held_from_a_later_layer_on() {
    for (Id v = 0; v < trace_.value_count(); ++v) {
      const auto& held = trace_.values[v].held;
      if (!is_in_chain(v) || !held) continue;
      const Id last_layer = layer_of_[v] + is_state_[v];
      if (held->first >= chain_.layers[last_layer].end) chain_.kept[v] = 1;
    }
  }

  [[nodiscard]] bool is_in_chain(Id v) const { return layer_of_[v] != no_layer && !chain_.kept[v]; }
  // A state serves the backward of the layer that makes it and of the next one.
  [[nodiscard]] Id lowest(Id v) const { return layer_of_[v]; }
  [[nodiscard]] Id highest(Id v) const { return layer_of_[v] + is_state_[v]; }
  // The layer that a moment which needs this value is at most due in. Values from outside and kept ones tell it, too.
  [[nodiscard]] Id due_at_most(Id v, Id otherwise) const {
    if (is_in_chain(v)) return highest(v);
    return last_reader_[v] != no_layer ? last_reader_[v] : otherwise;
  }

  // A moment is given to the highest layer that its needs allow, going down from the last layer, but not below one that
  // a later moment is the first to need something of. So one moment that needs something out of order does not disturb
  // the others.
  void give_backward_to_layers() {
    const Id moments = trace_.moment_count();
    const Id last = static_cast<Id>(chain_.layers.size()) - 1;
    due_.assign(moments, last);
    if (last < 0) return;
    std::vector<Id> at_least(moments + 1, 0);
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (!is_in_chain(v) || layer_of_[v] == last) continue;
      const auto needs = timeline_.needed_at(v);
      const auto first = std::lower_bound(needs.begin(), needs.end(), turn_);
      if (first != needs.end()) at_least[*first] = std::max(at_least[*first], lowest(v));
    }
    for (Id m = moments - 1; m >= turn_; --m) at_least[m] = std::max(at_least[m], at_least[m + 1]);
    Id due = last;
    for (Id m = turn_; m < moments; ++m) {
      for (const Id v : trace_.inputs(m)) due = std::min(due, due_at_most(v, due));
      due = due_[m] = std::max(due, at_least[m]);
    }
    Id m = turn_;
    for (Id layer = last; layer >= 0; --layer) {
      chain_.layers[layer].backward_first = m;
      while (m < moments && due_[m] == layer) ++m;
      chain_.layers[layer].backward_end = m;
    }
  }

  void keep_what_is_needed_out_of_order() {
    misfit_.reset();
    const Id last = static_cast<Id>(chain_.layers.size()) - 1;
    std::vector<Id> out_of_order;
    for (Id m = turn_; m < trace_.moment_count(); ++m) {
      for (const Id v : trace_.inputs(m)) {
        if (!is_in_chain(v) || (lowest(v) <= due_[m] && due_[m] <= highest(v))) continue;
        out_of_order.push_back(v);
        if (!misfit_ && lowest(v) != last) misfit_ = {m, v, lowest(v) + 1, due_[m] + 1};
      }
    }
    for (const Id v : out_of_order) chain_.kept[v] = 1;
  }

  // A layer that backward passes over joins a neighbour: the next one, or the one before it if that saves a cut whose
  // state backward needs.
  bool join_layers_without_backward() {
    std::vector<char> removed(cuts_.size(), 0);
    const auto needed = [&](const Cut& cut) { return cut.state && timeline_.last_needed(*cut.state) >= turn_; };
    bool changed = false;
    for (std::size_t i = 0; i < cuts_.size(); ++i) {
      const Layer& layer = chain_.layers[i];
      if (layer.backward_first != layer.backward_end) continue;
      const bool joins_previous = i > 0 && needed(cuts_[i]) && !needed(cuts_[i - 1]);
      removed[joins_previous ? i - 1 : i] = 1;
      changed = true;
    }
    std::size_t at = 0;
    std::erase_if(cuts_, [&](const Cut&) { return removed[at++] != 0; });
    return changed;
  }

  void fill_tapes() {
    for (Layer& layer : chain_.layers) {
      if (layer.state && chain_.kept[*layer.state]) layer.state.reset();
    }
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (!is_in_chain(v) || timeline_.last_needed(v) < turn_) continue;
      const Id layer = layer_of_[v];
      if (!is_state_[v]) {
        chain_.layers[layer].tape.push_back(v);
        continue;
      }
      for (const Id m : timeline_.needed_at(v)) {
        if (m < turn_) continue;
        (due_[m] == layer ? chain_.layers[layer].needs_state : chain_.layers[layer + 1].needs_input) = true;
      }
    }
  }

  // Layer 0 is the first in here. A value whose storage is taken over cannot be remembered.
  void find_input() {
    if (chain_.layers.empty()) return;
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (timeline_.made_at(v) != nowhere || trace_.values[v].held || timeline_.taken_at(v) != nowhere) continue;
      const auto needs = timeline_.needed_at(v);
      const bool only_first = !needs.empty() && std::all_of(needs.begin(), needs.end(), [&](Id m) {
        return m < turn_ ? m < chain_.layers.front().end : due_[m] == 0;
      });
      if (!only_first) continue;
      if (chain_.input) return chain_.input.reset();
      chain_.input = v;
    }
    chain_.layers.front().needs_input = chain_.input && timeline_.last_needed(*chain_.input) >= turn_;
  }

  const Trace& trace_;
  const Timeline& timeline_;
  const Id turn_;
  std::vector<Cut> cuts_;
  std::vector<char> always_kept_;  // by value
  Chain chain_;
  std::vector<Id> layer_of_;     // by value: the layer that makes it
  std::vector<Id> last_reader_;  // by value: the last layer that reads it
  std::vector<char> is_state_;   // by value
  std::vector<Id> due_;          // by moment of backward: the layer it belongs to
  std::optional<Misfit> misfit_;
};

// ---- a chain of single moments --------------------------------------------------------------------------------------

// The inputs of a moment that moments from `first` up to `end` make.
std::vector<Id> inputs_made_within(const Trace& trace, const Timeline& timeline, Id moment, Id first, Id end) {
  std::vector<Id> result;
  for (const Id v : trace.inputs(moment)) {
    if (timeline.made_at(v) >= first && timeline.made_at(v) < end) result.push_back(v);
  }
  return result;
}

std::string named(const Trace& trace, Id moment) {
  return fmt::format("moment {} '{}'", moment, trace.label(moment));
}

// Why a moment is no layer after the one before it; empty if it is.
std::string why_no_layer(const Trace& trace, const Timeline& timeline, Id moment) {
  if (moment == 0) return {};
  const auto states = inputs_made_within(trace, timeline, moment, 0, moment);
  if (states.empty()) return named(trace, moment) + " does not read the state before it";
  if (states.size() > 1) {
    return fmt::format("{} reads two states, values {} and {}", named(trace, moment), states[0], states[1]);
  }
  const Id made = timeline.made_at(states[0]);
  if (made == moment - 1) return {};
  return fmt::format("{} reads value {} of moment {}, not the state before it", named(trace, moment), states[0], made);
}

[[noreturn]] void fail(std::string_view planner, const std::string& why) {
  throw BadOption(fmt::format("planner {} needs a chain: {}", planner, why));
}

// Without events, backward starts with the first moment that is no layer. What follows has to look like backward: each
// moment reads at most one value that backward made.
std::string why_no_backward(const Trace& trace, const Timeline& timeline, Id turn) {
  for (Id m = turn; m < trace.moment_count(); ++m) {
    const auto gradients = inputs_made_within(trace, timeline, m, turn, m);
    if (gradients.size() > 1) {
      return fmt::format("{} reads values {} and {}", named(trace, m), gradients[0], gradients[1]);
    }
  }
  return {};
}

}  // namespace

Chain chain_of(const Trace& trace, const Timeline& timeline, std::string_view planner) {
  const auto event =
      std::find_if(trace.moments.begin(), trace.moments.end(), [](const Moment& m) { return !m.runs.has_value(); });
  const bool has_events = event != trace.moments.end();
  const Id forward_end = static_cast<Id>(event - trace.moments.begin());
  Id turn = 0;
  while (turn < forward_end && why_no_layer(trace, timeline, turn).empty()) ++turn;
  const std::string at_turn = turn < forward_end ? why_no_layer(trace, timeline, turn) : "";
  if (has_events && !at_turn.empty()) fail(planner, at_turn);

  std::vector<Cut> cuts;
  for (Id m = 1; m < turn; ++m) cuts.push_back({m, inputs_made_within(trace, timeline, m, 0, m).front()});
  Shaper shaper(trace, timeline, turn, std::move(cuts));
  Chain chain = shaper.shape();
  std::string misfit = has_events ? "" : why_no_backward(trace, timeline, turn);
  if (const auto& m = shaper.misfit(); m && misfit.empty()) {
    misfit = fmt::format("{} needs value {} of layer {} where backward of layer {} is due", named(trace, m->moment),
                         m->value, m->layer, m->due);
  }
  if (misfit.empty()) return chain;
  fail(planner, has_events ? misfit : fmt::format("{}, and backward does not start there: {}", at_turn, misfit));
}

// ---- a chain of stretches -------------------------------------------------------------------------------------------

Chain coarse_chain_of(const Trace& trace, const Timeline& timeline) {
  const Id turn = turn_of(trace, timeline);
  const auto can_rebuild = rebuildable(trace, timeline);
  // How many values cross the place before each moment, and the sum of their ids: the id itself if it is one value.
  std::vector<std::int64_t> count(turn + 1, 0), sum(turn + 1, 0);
  for (Id v = 0; v < trace.value_count(); ++v) {
    const Id made = timeline.made_at(v);
    const auto& held = trace.values[v].held;
    if (made == nowhere || made >= turn || !can_rebuild[v] || (held && held->last >= turn)) continue;
    Id last = made;
    for (const Id m : timeline.needed_at(v)) {
      if (m < turn) last = m;
    }
    ++count[made + 1], --count[last + 1];
    sum[made + 1] += v, sum[last + 1] -= v;
  }
  std::vector<Cut> cuts;
  std::optional<Id> state;
  for (Id m = 1; m < turn; ++m) {
    count[m] += count[m - 1];
    sum[m] += sum[m - 1];
    if (count[m] == 0) cuts.push_back({m, std::nullopt});
    if (count[m] != 1 || state == static_cast<Id>(sum[m])) continue;
    state = static_cast<Id>(sum[m]);
    cuts.push_back({m, state});
  }
  return Shaper(trace, timeline, turn, std::move(cuts)).shape();
}

Chain joined(const Trace& trace, const Timeline& timeline, const Chain& chain, std::size_t layers) {
  const std::size_t count = chain.layers.size();
  if (count <= std::max<std::size_t>(layers, 1)) return chain;
  std::vector<Cut> cuts;
  for (std::size_t i = 1; i < count; ++i) {
    const bool starts_one = i * layers / count != (i - 1) * layers / count;
    if (starts_one) cuts.push_back({chain.layers[i].first, chain.layers[i - 1].state});
  }
  return Shaper(trace, timeline, chain.turn, std::move(cuts)).shape();
}

}  // namespace reprise
