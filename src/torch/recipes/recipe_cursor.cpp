#include "torch/recipes/recipe_cursor.h"

#include <utility>

namespace reprise::internal {

RecipeCursor::RecipeCursor(std::shared_ptr<Recipes> followed)
    : recipes_(std::move(followed)), following_(recipes_ != nullptr) {
  if (!following_) recipes_ = std::make_shared<Recipes>();
  tapes_.resize(recipes_->operators.size());
}

Choice RecipeCursor::choice_of(Id value) const {
  const Id maker = info(value).maker;
  return maker == no_operator ? Choice::automatic : recipes_->operators[maker].choice;
}

Id RecipeCursor::add_value(Bytes bytes, Id maker, DeviceOrdinal device) {
  const Id id = static_cast<Id>(values());
  (following_ || sealed_ ? extra_ : recipes_->values).push_back({.bytes = bytes, .maker = maker, .device = device});
  return id;
}

void RecipeCursor::mark_verified(Id value) {
  if (in_recipes(value)) recipes_->values[value].verified = true;
}

void RecipeCursor::mark_copy_verified(Id value) {
  if (in_recipes(value)) recipes_->values[value].copy_verified = true;
}

void RecipeCursor::mark_partly_uninitialized(Id value) {
  if (in_recipes(value)) recipes_->values[value].partly_uninitialized = true;
}

void RecipeCursor::mark_outlasting(Id value) {
  if (in_recipes(value)) recipes_->values[value].must_keep_past_inputs = true;
}

Recipes& RecipeCursor::own() {
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(!following_);
  return *recipes_;
}

void RecipeCursor::add_operator(const Recipe& recipe) {
  own().operators.push_back(recipe);
  tapes_.emplace_back();
}

const c10::IValue& RecipeCursor::constant(std::uint32_t index) const {
  const auto changed = changed_constants_.find(index);
  return changed == changed_constants_.end() ? recipes_->constants[index] : changed->second;
}

std::size_t RecipeCursor::leave(std::optional<std::size_t> outputs) {
  auto mine = std::make_shared<Recipes>(recipes_->before(next_, outputs));
  const std::size_t extra_begin = mine->values.size();
  mine->values.insert(mine->values.end(), extra_.begin(), extra_.end());
  extra_.clear();
  for (auto& [index, constant] : changed_constants_) {
    if (index < mine->constants.size()) mine->constants[index] = constant;
  }
  changed_constants_.clear();
  recipes_ = std::move(mine);
  following_ = false;
  tapes_.resize(recipes_->operators.size());
  return extra_begin;
}

void RecipeCursor::change_to(std::shared_ptr<Recipes> recipes) {
  recipes_ = std::move(recipes);
  tapes_.resize(recipes_->operators.size());
}

}  // namespace reprise::internal
