// Saved values: which value a tensor has that autograd saves, what becomes of the value then (save_decision.h), and of
// both when the program writes. Under the arbiter's lock.
#pragma once

#include "torch/values/recording.h"

namespace reprise::internal {

// Returns the value that a storage holds. A storage that is unknown, or was written without the recording seeing that,
// gets a new value from outside, and saved tensors that saw no write go over to it. `expected_version` is that of the
// contents.
[[nodiscard]] Id look_up(Recording&, c10::StorageImpl*, const libtorch::Version&, std::uint32_t expected_version);
[[nodiscard]] Id look_up(Recording&, const at::Tensor&);

// Notes that autograd has saved the value, and keeps, packs or evicts it.
void attach(Recording&, SavedTensor&, Id value, c10::StorageImpl*);
// Notes that autograd has released the tensor, and releases the value if nothing else needs it.
void detach(Recording&, SavedTensor&);

// Moves those saved tensors of one value that saw no write to another version of its storage.
void follow_writes(Recording&, Id from, Id to);
// Notes that the program has written into the storage, and not by an operator of this recording.
void after_write(Recording&, c10::StorageImpl*, const libtorch::Version& of_tensor);

}  // namespace reprise::internal
