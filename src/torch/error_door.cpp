#include "torch/error_door.h"

#include <atomic>

namespace reprise::internal {
namespace {

std::atomic<ErrorDoor> door = nullptr;
constinit thread_local int inside = 0;

}  // namespace

void set_error_door(ErrorDoor function) {
  door = function;
}

void pass_error_door() {
  if (const ErrorDoor function = door; function && inside == 0) function();
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
