// Models whose steps differ: what a step does is drawn from the seed of the default generator, as a program would draw
// it from a generator of its own. Few traces come twice, but where blocks of one shape are left out: there only their
// number counts.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "training_models.h"

namespace reprise::benchmarks {

[[nodiscard]] const std::vector<std::pair<std::string, std::function<Model()>>>& changing_models();

}  // namespace reprise::benchmarks
