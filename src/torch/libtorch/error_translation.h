// The door through which errors of a session leave Reprise: from an allocation inside of one of LibTorch's kernels, or
// from a saved tensor that backward asks for. What is between there and the program may know only errors of another
// language's: Python's bindings turn everything else into a RuntimeError. So whoever binds that language may give an
// error another form here.
#pragma once

#include <utility>

#include "reprise/torch/errors.h"

namespace reprise::internal {

// Called with a SessionError in flight, on the thread that has it and without a lock of ours. Throws another error
// instead, or returns, and the error stays what it is. nullptr: no other form is asked for.
using ErrorTranslation = void (*)();
void set_error_translation(ErrorTranslation);
// Does what was set, unless the error stays inside.
void pass_error_door();

// What a BudgetError advises as long as no plan is known: on the CPU, where a step can be measured without its memory,
// and elsewhere. Whoever binds another language, or finds the steps of programs that know nothing of Reprise, sets the
// words for those who read them. They must outlive everything.
struct BudgetAdvice {
  const char* on_cpu;
  const char* elsewhere;
};
void set_budget_advice(const BudgetAdvice*);
// Returns the advice. Null if none was set.
[[nodiscard]] const BudgetAdvice* budget_advice();

// While it exists, errors of this thread stay what they are: code of ours may catch them.
class NoErrorTranslation {
 public:
  NoErrorTranslation();
  ~NoErrorTranslation();
  NoErrorTranslation(const NoErrorTranslation&) = delete;
  NoErrorTranslation& operator=(const NoErrorTranslation&) = delete;
};

// While it exists, errors of this thread leave all the same: frames of another language's are between them and us.
class ErrorTranslationPoint {
 public:
  ErrorTranslationPoint();
  ~ErrorTranslationPoint();
  ErrorTranslationPoint(const ErrorTranslationPoint&) = delete;
  ErrorTranslationPoint& operator=(const ErrorTranslationPoint&) = delete;

 private:
  const int inside_;
};

// Calls the function. Its SessionErrors leave through the door.
template <class Function>
auto through_error_door(Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (const SessionError&) {
    pass_error_door();
    throw;
  }
}

}  // namespace reprise::internal
