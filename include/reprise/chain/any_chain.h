// What chains of all types have in common: their layers, settings and numbers.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "reprise/chain/schedule.h"
#include "reprise/chain/statistics.h"
#include "reprise/export.h"
#include "reprise/store/codec.h"
#include "reprise/store/store.h"
#include "reprise/trace/verify.h"

namespace reprise {

class AnyChain;
namespace internal {
class ChainEngine;
class ChainStates;
// Sets the file system of disks that are set afterwards. For tests of what happens when files fail.
void set_file_system(AnyChain&, FileSystem*);
}  // namespace internal

// The layers of a chain.
class REPRISE_EXPORT ChainLayers {
 public:
  // Makes layers 0..count-1. Throws BadOption for a negative count.
  ChainLayers(int count);
  // Makes layers with these numbers, in any order and as often as wanted.
  ChainLayers(std::vector<int> numbers)
      : count_(static_cast<Id>(numbers.size())), numbers_(std::move(numbers)), known_(true) {}
  // Makes layers with these numbers: {0, 2, 1}. One number alone is a count.
  ChainLayers(int first, int second, std::same_as<int> auto... more)
      : ChainLayers(std::vector{first, second, more...}) {}
  // Makes layers with other whole numbers. Throws BadOption for one that does not fit an int.
  template <std::ranges::input_range R>
  requires std::integral<std::ranges::range_value_t<R>> &&
      (!std::same_as<R, std::vector<int>>)ChainLayers(const R& numbers)
      : ChainLayers(numbers_of(numbers)) {}
  // Makes layers numbered from 0, as many as run: forward ends when the caller decides.
  [[nodiscard]] static ChainLayers unknown() { return ChainLayers(); }

  [[nodiscard]] bool known() const { return known_; }
  [[nodiscard]] Id size() const { return count_; }
  [[nodiscard]] int number(Id position) const { return numbers_.empty() ? position : numbers_[position]; }

 private:
  ChainLayers() = default;
  template <class R>
  [[nodiscard]] static std::vector<int> numbers_of(const R& range) {
    std::vector<int> numbers;
    for (const auto number : range) {
      if (!std::in_range<int>(number)) fail_number(std::to_string(number));
      numbers.push_back(static_cast<int>(number));
    }
    return numbers;
  }
  [[noreturn]] static void fail_number(const std::string&);
  Id count_ = 0;
  std::vector<int> numbers_;  // empty: positions
  bool known_ = false;
};

// Limits for states that are saved by hand with Chain::save.
struct ByHand {
  std::optional<std::size_t> maximum = {};  // of states saved at a time, the input included; empty: no limit
  bool on_disk = false;                     // true: they are put on the chain's disk
  bool operator==(const ByHand&) const = default;
};

// What Chain::resume has found.
struct ChainResume {
  bool found = false;          // false: nothing to go on with; forward begins with the first layer
  Id forward = 0;              // the layer that forward goes on with; the number of layers if it is over
  std::optional<Id> backward;  // layers that backward has left; 0 if backward is over; empty if it had not begun
  explicit operator bool() const { return found; }
  bool operator==(const ChainResume&) const = default;
};

// A chain whose types do not matter. It can be moved, but not copied.
class REPRISE_EXPORT AnyChain {
 public:
  [[nodiscard]] const ChainLayers& layers() const;

  // Sets the schedule, with effect from the next pass on, as all settings. The default is schedule::every(), and
  // schedule::online(64) for an unknown number of layers.
  void schedule(SchedulePointer);
  [[nodiscard]] const SchedulePointer& schedule() const;

  // Switches the chain on or off. Off: every state is remembered until backward has used it, nothing is replayed, and
  // nothing is coded or on disk.
  void enabled(bool on);
  [[nodiscard]] bool enabled() const;

  // Sets what layers cost and how large their states are, for schedules that need to know. Throws BadOption for another
  // number of layers. See Chain::measure.
  void sizes(ChainForm);
  [[nodiscard]] const ChainForm& sizes() const;

  // Sets a function that is called after every closure, and from time to time while a plan is made. What it throws ends
  // the pass.
  void observer(std::function<void(const ChainProgress&)>);
  [[nodiscard]] const std::function<void(const ChainProgress&)>& observer() const;

  // Sets when a state that is made again is compared with the one that was evicted, by fingerprints of all their bits:
  // a closure with random numbers or a race is a ChainError with the layer then, and not a wrong gradient.
  // first_time means the first pass of each schedule. It is the default for states whose bytes are known to be equal if
  // they are (numbers, std::vector and std::array of numbers, and types whose StateTraits say so) in chains of at most
  // 2^18 layers, and never for others. Fingerprints take 8 bytes for each layer. States of a type that cannot be coded,
  // and chains with a codec that loses something, are not compared.
  void verify(Verify);
  [[nodiscard]] Verify verify() const;

  // Sets what states saved by hand may take.
  void by_hand(ByHand);
  [[nodiscard]] const ByHand& by_hand() const;

  // Switches planning in the background on or off. On: a pass for which there is no plan yet does not wait for the best
  // one. The pass runs by the first plan that is found, usually at once, and the best one is made in the background for
  // later passes.
  void plan_in_background(bool on);
  // Waits for the plan that is being made in the background, if there is one.
  void wait_for_plan();
  // Ends planning that goes on, in the background or not, with the best plan so far. May be called from any thread, and
  // by the observer.
  void cancel_planning();

  [[nodiscard]] ChainStatistics statistics() const;
  [[nodiscard]] StoreStatistics store_statistics(StateTier) const;

  // Return the plan of the pass that goes on, or of the last one, and the trace it is for. A schedule that decides as
  // it goes has a plan when backward has begun. plan() throws ChainError if there is none.
  [[nodiscard]] const Plan& plan() const;
  [[nodiscard]] Trace trace() const;

  // True if the state after this layer is remembered now. Schedule::remembers answers that before anything has run.
  [[nodiscard]] bool remembers(Id position) const;
  // Evicts all states and removes what a disk has kept. Statistics begin at 0.
  void clear();

 protected:
  // For Chain and ChainLoop, which name states by the slots that hold them: see internal/chain_states.h.
  AnyChain(ChainLayers, bool tapes, std::unique_ptr<internal::ChainStates>);
  ~AnyChain();
  AnyChain(AnyChain&&) noexcept;
  AnyChain& operator=(AnyChain&&) noexcept;

  void use_codec(const Codec&);
  void use_disk(DiskTier, std::optional<Bytes> transit);
  [[nodiscard]] const Codec* used_codec() const;
  [[nodiscard]] const std::optional<DiskTier>& used_disk() const;
  [[nodiscard]] ChainResume resume_pass(std::uint64_t fingerprint);
  void measure_layers();  // from the state that is lent

  void begin_forward(Id first);
  void begin_forward_until();
  [[nodiscard]] Id run_forward(Id input);
  [[nodiscard]] Id run_forward_until(Id input, const std::function<bool(Id position, Id state)>& done);
  void begin_backward();
  void run_backward();

  // Run a pass whose loop is the caller's, one layer at a time. `pass` is its number, 0 before it has begun.
  [[nodiscard]] Id run_layer_forward(std::uint64_t& pass, std::optional<double> cost);
  void begin_layer_backward(std::uint64_t pass);
  void run_layer_backward(std::uint64_t& pass);

  void require_layer(Id position) const;
  void save_state(Id state, Id slot);
  [[nodiscard]] Id copy_state(Id position);
  [[nodiscard]] Id recompute_state(Id position);

  [[nodiscard]] internal::ChainStates& states() { return *states_; }

 private:
  friend void internal::set_file_system(AnyChain&, FileSystem*);
  std::unique_ptr<internal::ChainStates> states_;
  std::unique_ptr<internal::ChainEngine> engine_;
};

}  // namespace reprise
