#include "plan/chains/chain_cuts.h"

#include <algorithm>

#include "plan/search/recomputer.h"

namespace reprise::internal {
namespace {

constexpr Id no_layer = -1;

// Makes layers out of cuts. Layers are counted from 0 in here.
class Shaper {
 public:
  Shaper(const Trace& trace, const Timeline& timeline, Id first_backward, std::vector<Cut> cuts)
      : trace_(trace), timeline_(timeline), first_backward_(first_backward), cuts_(std::move(cuts)) {
    const auto can_recompute = recomputable(trace, timeline);
    always_kept_.assign(trace.values.size(), 1);
    for (Id v = 0; v < trace.value_count(); ++v) {
      const Id made = timeline.made_at(v);
      const auto& held = trace.values[v].held;
      if (made == nowhere || made >= first_backward) continue;
      always_kept_[v] = !can_recompute[v] || (held && held->last >= first_backward);
    }
    // A state that is gone when its layer's successor has run cannot be remembered.
    std::erase_if(cuts_, [&](const Cut& cut) { return cut.state && timeline.taken_at(*cut.state) != nowhere; });
  }

  ShapedChain shape() {
    do {
      lay_out();
      give_backward_to_layers();
      keep_what_is_needed_out_of_order();
    } while (join_layers_without_backward());
    fill_tapes();
    find_input();
    return {std::move(chain_), misfit_};
  }

 private:
  void lay_out() {
    chain_ = {first_backward_, {}, std::nullopt, always_kept_};
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
    if (first_backward_ > 0) add(first_backward_, std::nullopt);
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
  // Returns the last layer in which a moment that needs this value can be due. Values from outside and kept ones have
  // one as well.
  [[nodiscard]] Id due_at_most(Id v, Id otherwise) const {
    if (is_in_chain(v)) return highest(v);
    return last_reader_[v] != no_layer ? last_reader_[v] : otherwise;
  }

  // A moment is given to the highest layer that its needs allow, going down from the last layer, but not below one that
  // a later moment is the first to need something of. So one moment that needs something out of order does not disturb
  // the others. What the last layer makes has no say in this: it may be a gradient that goes through all of backward.
  void give_backward_to_layers() {
    const Id moments = trace_.moment_count();
    const Id last = static_cast<Id>(chain_.layers.size()) - 1;
    due_.assign(moments, last);
    if (last < 0) return;
    std::vector<Id> at_least(moments + 1, 0);
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (!is_in_chain(v) || layer_of_[v] == last) continue;
      const auto needs = timeline_.needed_at(v);
      const auto first = std::lower_bound(needs.begin(), needs.end(), first_backward_);
      if (first != needs.end()) at_least[*first] = std::max(at_least[*first], lowest(v));
    }
    for (Id m = moments - 1; m >= first_backward_; --m) at_least[m] = std::max(at_least[m], at_least[m + 1]);
    Id due = last;
    for (Id m = first_backward_; m < moments; ++m) {
      for (const Id v : trace_.inputs(m)) due = std::min(due, due_at_most(v, due));
      due = due_[m] = std::max(due, at_least[m]);
    }
    Id m = first_backward_;
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
    for (Id m = first_backward_; m < trace_.moment_count(); ++m) {
      for (const Id v : trace_.inputs(m)) {
        if (!is_in_chain(v) || (lowest(v) <= due_[m] && due_[m] <= highest(v))) continue;
        out_of_order.push_back(v);
        if (!misfit_ && lowest(v) != last) misfit_ = {m, v, lowest(v) + 1, due_[m] + 1};
      }
    }
    for (const Id v : out_of_order) chain_.kept[v] = 1;
  }

  // Joins a layer that backward passes over with a neighbour: the next one, or the one before it if that saves a cut
  // whose state backward needs.
  bool join_layers_without_backward() {
    std::vector<char> removed(cuts_.size(), 0);
    const auto needed = [&](const Cut& cut) {
      return cut.state && timeline_.last_needed(*cut.state) >= first_backward_;
    };
    bool changed = false;
    for (std::size_t i = 0; i < cuts_.size(); ++i) {
      const LayerShape& layer = chain_.layers[i];
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
    for (LayerShape& layer : chain_.layers) {
      if (layer.state && chain_.kept[*layer.state]) layer.state.reset();
    }
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (!is_in_chain(v) || timeline_.last_needed(v) < first_backward_) continue;
      const Id layer = layer_of_[v];
      if (!is_state_[v]) {
        chain_.layers[layer].tape.push_back(v);
        continue;
      }
      for (const Id m : timeline_.needed_at(v)) {
        if (m < first_backward_) continue;
        (due_[m] == layer ? chain_.layers[layer].needs_state : chain_.layers[layer + 1].needs_input) = true;
      }
    }
  }

  // A value whose storage is taken over cannot be remembered.
  void find_input() {
    if (chain_.layers.empty()) return;
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (timeline_.made_at(v) != nowhere || trace_.values[v].held || timeline_.taken_at(v) != nowhere) continue;
      const auto needs = timeline_.needed_at(v);
      const bool only_first = !needs.empty() && std::all_of(needs.begin(), needs.end(), [&](Id m) {
        return m < first_backward_ ? m < chain_.layers.front().end : due_[m] == 0;
      });
      if (!only_first) continue;
      if (chain_.input) return chain_.input.reset();
      chain_.input = v;
    }
    chain_.layers.front().needs_input = chain_.input && timeline_.last_needed(*chain_.input) >= first_backward_;
  }

  const Trace& trace_;
  const Timeline& timeline_;
  const Id first_backward_;
  std::vector<Cut> cuts_;
  std::vector<char> always_kept_;  // by value
  ChainShape chain_;
  std::vector<Id> layer_of_;     // by value: the layer that makes it
  std::vector<Id> last_reader_;  // by value: the last layer that reads it
  std::vector<char> is_state_;   // by value
  std::vector<Id> due_;          // by moment of backward: the layer it belongs to
  std::optional<Misfit> misfit_;
};

}  // namespace

ShapedChain shape_chain(const Trace& trace, const Timeline& timeline, Id first_backward, std::vector<Cut> cuts) {
  return Shaper(trace, timeline, first_backward, std::move(cuts)).shape();
}

}  // namespace reprise::internal
