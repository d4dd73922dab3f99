// Models whose steps differ: what a step does is drawn from the seed of the default generator, as a program would draw
// it from a generator of its own. Hardly any trace comes twice.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "training_models.h"

namespace reprise::benchmarks {

[[nodiscard]] const std::vector<std::pair<std::string, std::function<Model()>>>& changing_models();

}  // namespace reprise::benchmarks
