// A fake run: a process in which a step is only measured. Large tensors share pages, and who asks for what is in a
// tensor that depends on them gets an error instead. Whole numbers and truth values that depend on nothing else (masks,
// lengths, positions) are computed: programs ask for these.
#pragma once

namespace reprise::internal {

// From now on, for good, in this process, and on this thread: it is a copy that ends with the measurement. Throws
// Error.
void begin_fake_run();

}  // namespace reprise::internal
