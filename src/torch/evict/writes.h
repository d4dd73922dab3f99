// Writes: what the program is about to write, and what recordings know about it.
//
// A recipe may need contents that are about to be overwritten: they are copied first. A saved tensor whose version
// counter sees no write (one through data(), or by a kernel that does not say so) goes on with the new contents,
// exactly as it would without Reprise.
//
// The recorder calls these functions for the operators that it sees. In backward operators are not recorded, but hooks
// and functions of the user's run there too: while it is watched, every operator that writes is intercepted.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "torch/recipes/operator_table.h"

namespace reprise::internal::writes {

// Returns how many operators of this thread run now that are recorded, or ignored with all they call: the recorder sees
// to what they write.
[[nodiscard]] int& operators_under_way();

using Written = c10::SmallVector<at::Tensor, 2>;

// Returns which of the arguments the operator writes into, also without declaring it.
[[nodiscard]] Written written_by(const OperatorInfo&, c10::ArrayRef<const c10::IValue> inputs);

// Copies what recipes need of these tensors' contents, for all recordings. Without room for a copy, recipes that need
// it say so when they are asked.
void save_contents(const Written&);

// Marks contents of which recordings have no copy as lost: what was computed from them and is still there is kept from
// now on.
void lose_contents(const Written&);

// Unbinds the contents in all recordings, because they are other ones now.
void take_over(const Written&);

// While it exists, and if anything is recorded anywhere, operators are watched for writes.
class Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  bool watching_ = false;
};

}  // namespace reprise::internal::writes
