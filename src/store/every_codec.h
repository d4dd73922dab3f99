// The codecs of src/store/codecs, in no order. CMake writes the definition from the names of the files there.
#pragma once

#include <vector>

#include "reprise/store/codec.h"

namespace reprise::internal {

[[nodiscard]] std::vector<const Codec*> every_codec();

}  // namespace reprise::internal
