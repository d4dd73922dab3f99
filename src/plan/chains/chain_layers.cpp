#include "plan/chains/chain_layers.h"

#include <algorithm>

namespace reprise::internal {
namespace {

// Bytes over a range of places, added stretch by stretch.
class Profile {
 public:
  explicit Profile(Id places) : change_(places + 1, 0) {}
  void add(Id first, Id last, Bytes bytes) {
    if (first > last) return;
    change_[first] += bytes;
    change_[last + 1] -= bytes;
  }
  [[nodiscard]] std::vector<Bytes> sums() const {
    std::vector<Bytes> result(change_.begin(), change_.end() - 1);
    for (std::size_t i = 1; i < result.size(); ++i) result[i] += result[i - 1];
    return result;
  }

 private:
  std::vector<Bytes> change_;
};

// What is live at each moment that the chain's schedule has no say in: other bytes, and values that are kept.
struct Background {
  std::vector<Bytes> during;  // by moment: while it runs, workspace included
  std::vector<Bytes> before;  // by moment: when it is next, but replays come first
};

Background background_of(const Trace& trace, const Timeline& timeline, const ChainShape& chain) {
  const Id moments = trace.moment_count();
  Profile during(moments), before(moments);
  std::vector<Id> layer_of(moments, nowhere);
  for (std::size_t k = 0; k < chain.layers.size(); ++k) {
    for (Id m = chain.layers[k].first; m < chain.layers[k].end; ++m) layer_of[m] = static_cast<Id>(k);
  }
  for (Id v = 0; v < trace.value_count(); ++v) {
    if (v == chain.input) continue;
    const Value& value = trace.values[v];
    const Id made = timeline.made_at(v);
    if (!chain.kept[v]) {
      // The program may hold on to it when its layer is over.
      const Id end = chain.layers[layer_of[made]].end;
      if (value.held) during.add(std::max(end, value.held->first), value.held->last, value.bytes);
      continue;
    }
    const Id first = made != nowhere ? made : value.held ? value.held->first : -1;
    Id last = std::max(timeline.last_needed(v), first);
    if (value.held) last = std::max(last, value.held->last);
    Id last_replay = last;  // layers but the last may be replayed until their backward starts
    for (const Id m : timeline.needed_at(v)) {
      if (m >= chain.first_backward || layer_of[m] + 1 == static_cast<Id>(chain.layers.size())) continue;
      last_replay = std::max(last_replay, chain.layers[layer_of[m]].backward_first);
    }
    const Id taken = timeline.taken_at(v);
    const Id gone = taken != nowhere ? taken : moments;  // from then on its bytes are another value's
    during.add(std::max<Id>(first, 0), std::min({std::max(last, last_replay - 1), gone - 1, moments - 1}), value.bytes);
    before.add(first + 1, std::min({last_replay, gone, moments - 1}), value.bytes);
  }
  Background result{during.sums(), before.sums()};
  for (Id m = 0; m < moments; ++m) {
    result.during[m] += trace.moments[m].other + trace.workspace(m);
    result.before[m] += trace.moments[m].other;
  }
  return result;
}

// Measures one layer. Its input is the state before it.
class LayerMeasure {
 public:
  LayerMeasure(const Trace& trace, const Timeline& timeline, const ChainShape& chain, const Background& background,
               std::size_t at)
      : trace_(trace),
        timeline_(timeline),
        chain_(chain),
        background_(background),
        layer_(chain.layers[at]),
        input_(at > 0 ? chain.layers[at - 1].state : chain.input) {}

  ChainLayer measure() {
    ChainLayer result;
    if (layer_.state) result.state_bytes = bytes(*layer_.state);
    for (const Id v : layer_.tape) result.tape_bytes += bytes(v);
    for (Id m = layer_.first; m < layer_.end; ++m) result.run_cost += trace_.cost(m);
    result.needs_input = layer_.needs_input;
    result.needs_state = layer_.needs_state && layer_.state;
    const Step evicting = run(false), taping = run(true);
    result.first = {evicting.plain, evicting.with_input, taping.plain, taping.with_input};

    std::vector<Id> state;
    if (layer_.state) state.push_back(*layer_.state);
    std::vector<Id> tape = layer_.tape, needed = layer_.tape;
    tape.insert(tape.end(), state.begin(), state.end());
    if (layer_.needs_state) needed.insert(needed.end(), state.begin(), state.end());

    const Step advance = replay(state, {}), taped = replay(tape, {}), fresh = replay(needed, {});
    const Step loose = replay(needed, layer_.state);
    result.advance_cost = advance.cost;
    result.tape_cost = taped.cost;
    result.fresh_retape_cost = fresh.cost;
    result.loose_retape_cost = loose.cost;
    result.again = {advance.plain, advance.with_input, taped.plain, taped.with_input};
    result.fresh_retape = fresh.plain;
    result.fresh_retape_from = fresh.with_input;
    result.loose_retape = loose.plain;
    measure_backward(needed, result);
    return result;
  }

 private:
  struct Step {
    Bytes plain = 0;
    Bytes with_input = 0;  // the input state counted as long as it is used
    double cost = 0;
  };

  [[nodiscard]] Bytes bytes(Id v) const { return trace_.values[v].bytes; }
  [[nodiscard]] static bool contains(const std::vector<Id>& ascending, Id v) {
    return std::binary_search(ascending.begin(), ascending.end(), v);
  }

  // Forward for the first time, with the tape remembered or not.
  [[nodiscard]] Step run(bool taping) const {
    Profile local(layer_.end - layer_.first);
    for (Id m = layer_.first; m < layer_.end; ++m) {
      for (const Id v : trace_.outputs(m)) {
        if (chain_.kept[v]) continue;
        const auto& held = trace_.values[v].held;
        Id last = m;
        for (const Id need : timeline_.needed_at(v)) {
          if (need < layer_.end) last = need;
        }
        if (held) last = std::max(last, std::min(held->last, layer_.end - 1));
        if (v == layer_.state || (taping && contains(layer_.tape, v))) last = layer_.end - 1;
        const Id taken = timeline_.taken_at(v);
        if (taken != nowhere) last = std::min(last, taken - 1);
        local.add(m - layer_.first, last - layer_.first, bytes(v));
      }
    }
    const std::vector<Bytes> sums = local.sums();
    Id input_used = layer_.first - 1;
    if (input_) {
      for (const Id need : timeline_.needed_at(*input_)) {
        if (need < layer_.end) input_used = need;
      }
    }
    Step step;
    for (Id m = layer_.first; m < layer_.end; ++m) {
      const Bytes live = background_.during[m] + sums[m - layer_.first];
      step.plain = std::max(step.plain, live);
      step.with_input = std::max(step.with_input, live + (m <= input_used ? bytes(*input_) : 0));
    }
    return step;
  }

  // Returns the moments of the layer that make these values again, if beside what is kept and the input state this one
  // is there.
  [[nodiscard]] std::vector<Id> moments_for(const std::vector<Id>& wanted, std::optional<Id> there) const {
    std::vector<char> taken(layer_.end - layer_.first, 0);
    std::vector<Id> stack = wanted, moments;
    while (!stack.empty()) {
      const Id v = stack.back();
      stack.pop_back();
      const Id made = timeline_.made_at(v);
      if (v == there || made < layer_.first || (chain_.kept[v] && timeline_.taken_at(v) == nowhere)) continue;
      if (taken[made - layer_.first]) continue;
      taken[made - layer_.first] = 1;
      moments.push_back(made);
      stack.insert(stack.end(), trace_.inputs(made).begin(), trace_.inputs(made).end());
    }
    std::sort(moments.begin(), moments.end());
    return moments;
  }

  [[nodiscard]] Step replay(std::vector<Id> wanted, std::optional<Id> there) const {
    std::sort(wanted.begin(), wanted.end());
    const std::vector<Id> moments = moments_for(wanted, there);
    const Id count = static_cast<Id>(moments.size());
    const auto used_until = [&](Id v) {
      if (contains(wanted, v)) return count - 1;
      Id last = -1;
      for (const Id m : timeline_.needed_at(v)) {
        const auto at = std::lower_bound(moments.begin(), moments.end(), m);
        if (at != moments.end() && *at == m) last = static_cast<Id>(at - moments.begin());
      }
      return last;
    };
    Profile local(count);
    bool makes_state = false;
    for (Id i = 0; i < count; ++i) {
      for (const Id v : trace_.outputs(moments[i])) {
        // What is kept and made a second time goes when the replay ends.
        local.add(i, chain_.kept[v] ? i : std::max(i, used_until(v)), bytes(v));
        makes_state |= v == layer_.state;
      }
    }
    if (there && !makes_state && (layer_.needs_state || used_until(*there) >= 0))
      local.add(0, count - 1, bytes(*there));
    const Id input_used = input_ ? used_until(*input_) : -1;
    const std::vector<Bytes> sums = local.sums();
    Step step;
    for (Id i = 0; i < count; ++i) {
      const Bytes live = sums[i] + trace_.workspace(moments[i]);
      step.plain = std::max(step.plain, live);
      step.with_input = std::max(step.with_input, live + (i <= input_used ? bytes(*input_) : 0));
      step.cost += trace_.cost(moments[i]);
    }
    return step;
  }

  void measure_backward(const std::vector<Id>& needed, ChainLayer& result) const {
    const Id first = layer_.backward_first, end = layer_.backward_end;
    Profile local(end - first);
    for (const Id v : needed) {
      const Id taken = timeline_.taken_at(v);
      const Id last = taken != nowhere && taken < end ? taken - 1 : std::min(timeline_.last_needed(v), end - 1);
      local.add(0, last - first, bytes(v));
    }
    const std::vector<Bytes> sums = local.sums();
    for (Id m = first; m < end; ++m) {
      result.backward = std::max(result.backward, background_.during[m] + sums[m - first]);
      result.backward_cost += trace_.cost(m);
    }
    if (first < trace_.moment_count()) result.waiting = background_.before[first];
    if (first == end) result.backward = result.first.advance;  // not the least of all, which sets the units
  }

  const Trace& trace_;
  const Timeline& timeline_;
  const ChainShape& chain_;
  const Background& background_;
  const LayerShape& layer_;
  const std::optional<Id> input_;  // the state before the layer, if it can be evicted
};

}  // namespace

ChainProblem measure_chain(const Trace& trace, const Timeline& timeline, const ChainShape& chain) {
  const Background background = background_of(trace, timeline, chain);
  ChainProblem problem;
  if (chain.input) problem.input_bytes = trace.values[*chain.input].bytes;
  for (std::size_t at = 0; at < chain.layers.size(); ++at) {
    problem.layers.push_back(LayerMeasure(trace, timeline, chain, background, at).measure());
  }
  return problem;
}

}  // namespace reprise::internal
