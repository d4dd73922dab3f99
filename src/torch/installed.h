// What is put in LibTorch's place when the library is loaded: so that no tensor is missed, and every saved tensor is
// seen.
#pragma once

namespace reprise::internal {

// Called by whoever needs it, so that a program that is linked with a static library has it. Does nothing more.
void need_installed();

}  // namespace reprise::internal
