#include "torch/recipes/course.h"

#include <utility>

namespace reprise::internal {

Course::Course(std::shared_ptr<Recipes> followed) : recipes_(std::move(followed)), following_(recipes_ != nullptr) {
  if (!following_) recipes_ = std::make_shared<Recipes>();
  tapes_.resize(recipes_->operators.size());
}

Choice Course::choice_of(Id value) const {
  const Id maker = info(value).maker;
  return maker == no_operator ? Choice::decide : recipes_->operators[maker].choice;
}

Id Course::add_value(Bytes bytes, Id maker, PlaceIndex place) {
  const Id id = static_cast<Id>(values());
  (following_ || sealed_ ? extra_ : recipes_->values).push_back({.bytes = bytes, .maker = maker, .place = place});
  return id;
}

void Course::mark_verified(Id value) {
  if (in_recipes(value)) recipes_->values[value].verified = true;
}

void Course::mark_unwritten(Id value) {
  if (in_recipes(value)) recipes_->values[value].unwritten = true;
}

void Course::mark_outlasting(Id value) {
  if (in_recipes(value)) recipes_->values[value].outlasts = true;
}

Recipes& Course::own() {
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(!following_);
  return *recipes_;
}

void Course::add_operator(const Recipe& recipe) {
  own().operators.push_back(recipe);
  tapes_.emplace_back();
}

const c10::IValue& Course::constant(std::uint32_t index) const {
  const auto changed = changed_constants_.find(index);
  return changed == changed_constants_.end() ? recipes_->constants[index] : changed->second;
}

std::size_t Course::leave(std::optional<std::size_t> outputs) {
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

void Course::change_to(std::shared_ptr<Recipes> recipes) {
  recipes_ = std::move(recipes);
  tapes_.resize(recipes_->operators.size());
}

}  // namespace reprise::internal
