#include "torch/site.h"

namespace reprise::internal {

Site::Site() : rules_(std::make_shared<Rules>(SessionOptions{.name = "checkpoint"})) {
  rules_->allow_forgetting();
}

std::shared_ptr<Recording> Site::begin_period() {
  return std::make_shared<Recording>(rules_, recipes_);
}

void Site::end_region(Recording& recording) {
  recording.end();
  const Course& course = recording.course();
  if (!course.following() && !course.recipes().operators.empty()) recipes_ = course.shared();
}

}  // namespace reprise::internal
