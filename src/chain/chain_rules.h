// Checks the plan of a chain by the interpreter's rules, one action after the other.
//
// `simulate` takes a trace and a plan as a whole, which for a chain of ten million layers are gigabytes. Here the trace
// follows from the number of layers, which may be set when forward is over; the memory is one bit for each value, and
// one for each state in each tier. The rules are those of simulate.h except for budgets and capacities, because bytes
// are not known. A run or replay may stand for several layers: see step_writer.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"

namespace reprise::internal {

class ChainRules {
 public:
  ChainRules(bool tapes, Id tiers) : tapes_(tapes), copies_(static_cast<std::size_t>(tiers)) {
    make_room(0);
    resident_.set(0);
  }

  // Sets the number of layers.
  void set_layers(Id);
  // Executes these actions from `first` on. Throws BadOption with the rule that one breaks. `last_gets` are the
  // positions of the gets after which a copy leaves its tier, ascending.
  void execute(std::span<const Action> actions, std::size_t first, std::span<const std::size_t> last_gets);
  // Throws BadOption if a moment has not run.
  void end() const;

 private:
  static constexpr Id unknown = std::numeric_limits<Id>::max() / 2;

  // One bit for each number.
  class Bits {
   public:
    void make_room(Id numbers) { words_.resize(static_cast<std::size_t>(numbers) / 64 + 1); }
    [[nodiscard]] bool operator[](Id number) const { return (words_[at(number)] >> (number % 64) & 1) != 0; }
    void set(Id number) { words_[at(number)] |= std::uint64_t{1} << (number % 64); }
    void clear(Id number) { words_[at(number)] &= ~(std::uint64_t{1} << (number % 64)); }
    // Set and clear the numbers from `first` to the one before `end`.
    void set(Id first, Id end) {
      for_words(first, end, [this](std::size_t word, std::uint64_t mask) { words_[word] |= mask; });
    }
    void clear(Id first, Id end) {
      for_words(first, end, [this](std::size_t word, std::uint64_t mask) { words_[word] &= ~mask; });
    }

   private:
    [[nodiscard]] static std::size_t at(Id number) { return static_cast<std::size_t>(number) / 64; }
    template <class Use>
    static void for_words(Id first, Id end, const Use& use) {
      while (first < end) {
        const Id count = std::min(end - first, 64 - first % 64);
        use(at(first), ~std::uint64_t{0} >> (64 - count) << (first % 64));
        first += count;
      }
    }
    std::vector<std::uint64_t> words_;
  };

  void execute(const Action&, bool last_get);
  void forward(const Action&);
  void backward(const Action&);
  [[nodiscard]] Bits& copies(const Action&);
  void make_room(Id states);
  // Returns the last of the moments that a run or replay stands for.
  [[nodiscard]] static Id last_moment(const Action& action) { return action.target + std::abs(action.tier); }
  void require_moments(const Action& action) const {
    if (action.target < 0 || last_moment(action) >= 2 * layers_) fail(action, Rule::known, "there is no such moment");
  }
  void require_value(const Action& action) const {
    if (action.target < 0 || action.target >= values_) fail_value(action);
  }
  void require_resident(const Action& action, Id value, const char* why) const {
    if (!resident_[value]) fail_resident(action, value, why);
  }
  [[noreturn]] void fail_value(const Action&) const;
  [[noreturn]] static void fail_resident(const Action&, Id value, const char* why);
  [[noreturn]] static void fail(const Action&, Rule, const std::string& why);
  [[nodiscard]] Id state_value(Id state) const { return tapes_ ? 2 * state : state; }

  const bool tapes_;
  Id layers_ = unknown;
  Id values_ = 0;             // that the bits have room for: all, or those that were made so far
  Id next_ = 0;               // the moment to run next
  Bits resident_;             // by value
  std::vector<Bits> copies_;  // by tier, and by value
};

}  // namespace reprise::internal
