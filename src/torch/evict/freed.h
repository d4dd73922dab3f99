// Freed memory: what recordings know about a storage whose memory the program frees, or moves elsewhere, while the
// storage itself lives on.
//
// FSDP does so with the parameters of a layer: it frees them after the layer has run, and gathers the same contents
// into the same storage before backward needs them. Such a value is *gone for now*: it can be read again once it is
// back, and what was made of it can be recomputed then. What the program still has when the value goes is needed
// elsewhere, and perhaps sooner: it *must_keep_past_inputs* what it was made of, and is kept. Memory that will not come
// back, and that recipes need, is not freed but ours from then on.
#pragma once

#include "torch/memory/meter.h"

namespace reprise::internal {

// Takes tagged memory that is about to be freed if recipes need it, and returns true then: the meter's on_free
// callback.
bool memory_freed(meter::Header&);

}  // namespace reprise::internal
