// The cursor of a pass: its recipes, which it follows or writes, up to the operator to come; and what is its own
// where it follows: values that the recipes do not have, numbers that differ, what operators drew.
//
// Under the arbiter's lock.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "torch/recipes/random_tape.h"
#include "torch/recipes/recipes.h"

namespace reprise::internal {

class RecipeCursor {
 public:
  // Follows these recipes for as long as the operators match; nullptr: writes its own from the start.
  explicit RecipeCursor(std::shared_ptr<Recipes> followed);

  // Returns those of another pass while following.
  [[nodiscard]] const Recipes& recipes() const { return *recipes_; }
  [[nodiscard]] const std::shared_ptr<Recipes>& shared() const { return recipes_; }
  [[nodiscard]] bool following() const { return following_; }
  [[nodiscard]] Id next() const { return next_; }  // the operator to come
  [[nodiscard]] bool complete() const { return next_ == static_cast<Id>(recipes_->operators.size()); }
  void advance() { ++next_; }

  // ---- values ----
  [[nodiscard]] std::size_t values() const { return recipes_->values.size() + extra_.size(); }
  [[nodiscard]] bool in_recipes(Id value) const { return static_cast<std::size_t>(value) < recipes_->values.size(); }
  [[nodiscard]] const RecordedValue& info(Id value) const {
    return in_recipes(value) ? recipes_->values[value]
                             : extra_[static_cast<std::size_t>(value) - recipes_->values.size()];
  }
  // Returns what the policy says about it.
  [[nodiscard]] Choice choice_of(Id value) const;
  [[nodiscard]] Id add_value(Bytes, Id maker, DeviceOrdinal = 0);
  // Notes that it was recomputed and found to be the same bits.
  void mark_verified(Id value);
  // Its copy came back from a tier and was found to be the same bits.
  void mark_copy_verified(Id value);
  // Marks a value that has uninitialized bytes: it is not compared any more.
  void mark_partly_uninitialized(Id value);
  // Notes that what it is made of goes before it does, here and where others follow the same recipes.
  void mark_outlasting(Id value);

  // ---- operators ----
  // Not while following.
  [[nodiscard]] Recipes& own();
  void add_operator(const Recipe&);
  // Marks the operator as not to be replayed: here, and where others follow the same recipes.
  void mark_not_replayable(Id op, const char* why) { recipes_->mark_not_replayable(op, why); }

  [[nodiscard]] const draws::Tape& tape(Id op) const { return tapes_[op]; }
  void tape(Id op, draws::Tape tape) { tapes_[op] = std::move(tape); }
  // Returns a number among the arguments, as it is in this pass.
  [[nodiscard]] const c10::IValue& constant(std::uint32_t index) const;
  void change_constant(std::uint32_t index, const c10::IValue& number) { changed_constants_[index] = number; }

  // ---- other recipes ----
  // Leaves those it follows: from here on it writes its own, a copy of them up to the operator to come; or, with the
  // number of outputs that did match, up to those of this one. Values that the recipes did not have move to behind
  // those of the copy: returns where they begin now.
  std::size_t leave(std::optional<std::size_t> outputs);
  // Follows those of another pass that began in the same way.
  void change_to(std::shared_ptr<Recipes>);
  // Keeps its recipes from changing, because others may follow them.
  void seal() { sealed_ = true; }

 private:
  std::shared_ptr<Recipes> recipes_;
  bool following_ = false;
  bool sealed_ = false;
  Id next_ = 0;
  std::vector<RecordedValue> extra_;  // values beyond those of the recipes that are followed
  std::unordered_map<std::uint32_t, c10::IValue> changed_constants_;  // by index of the constant
  std::vector<draws::Tape> tapes_;                                    // by operator
};

}  // namespace reprise::internal
