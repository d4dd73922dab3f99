// A checkpoint site: a place of the program where regions begin, with the recipes of the last call at it. The next call
// follows them.
#pragma once

#include <memory>

#include "torch/source.h"

namespace reprise::internal {

class Site final : public Source {
 public:
  Site();

  [[nodiscard]] std::shared_ptr<Recording> begin_period() override;
  void end_period(Recording&) override {}  // a region has no steps, and nothing is planned
  [[nodiscard]] Rules& rules() override { return *rules_; }

  // The region has ended. Under the arbiter's lock.
  void end_region(Recording&);

 private:
  const std::shared_ptr<Rules> rules_;
  std::shared_ptr<Recipes> recipes_;  // of the last call
};

}  // namespace reprise::internal
