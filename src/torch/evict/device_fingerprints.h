// Fingerprints of values on accelerators. Reading them waits for the device, so that is not done under the arbiter's
// lock, where values are evicted: they are held (Values::take_fingerprints) until whoever has let go of the lock has
// read them here.
#pragma once

#include "torch/values/recording.h"

namespace reprise::internal {

// Of one recording, or of all that have the device of this meter. Frees what was held. Not under the lock. What the
// device throws is thrown again where the value is asked for (SavedTensor::unread), because LibTorch's callbacks
// swallow errors; by the second one at once, too.
void read_fingerprints(Recording&);
void read_fingerprints(const Meter&);

// A value there differs: throws what a kernel threw, if that is why. Waits for the device. Not under the lock.
void expect_no_failure(const c10::Storage&);

}  // namespace reprise::internal
