#include "torch/libtorch/error_translation.h"

#include <atomic>

namespace reprise::internal {
namespace {

std::atomic<ErrorTranslation> door = nullptr;
std::atomic<const BudgetAdvice*> advice_in_force = nullptr;
constinit thread_local int inside = 0;

}  // namespace

void set_error_translation(ErrorTranslation function) {
  door = function;
}

void pass_error_door() {
  if (const ErrorTranslation function = door; function && inside == 0) function();
}

void set_budget_advice(const BudgetAdvice* words) {
  advice_in_force = words;
}

const BudgetAdvice* budget_advice() {
  return advice_in_force;
}

NoErrorTranslation::NoErrorTranslation() {
  ++inside;
}
NoErrorTranslation::~NoErrorTranslation() {
  --inside;
}

ErrorTranslationPoint::ErrorTranslationPoint() : inside_(std::exchange(inside, 0)) {}
ErrorTranslationPoint::~ErrorTranslationPoint() {
  inside = inside_;
}

}  // namespace reprise::internal
