#include "torch/libtorch/error_door.h"

#include <atomic>

namespace reprise::internal {
namespace {

std::atomic<ErrorDoor> door = nullptr;
std::atomic<const BudgetAdvice*> advice_in_force = nullptr;
constinit thread_local int inside = 0;

}  // namespace

void set_error_door(ErrorDoor function) {
  door = function;
}

void pass_error_door() {
  if (const ErrorDoor function = door; function && inside == 0) function();
}

void set_budget_advice(const BudgetAdvice* words) {
  advice_in_force = words;
}

const BudgetAdvice* budget_advice() {
  return advice_in_force;
}

ErrorsStayInside::ErrorsStayInside() {
  ++inside;
}
ErrorsStayInside::~ErrorsStayInside() {
  --inside;
}

ErrorsMayLeave::ErrorsMayLeave() : inside_(std::exchange(inside, 0)) {}
ErrorsMayLeave::~ErrorsMayLeave() {
  inside = inside_;
}

}  // namespace reprise::internal
