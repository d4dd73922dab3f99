// What is put in LibTorch's place when the library is loaded: so that no tensor is missed, and every saved tensor is
// seen.
#pragma once

namespace reprise::internal {

// Called where it is needed, so that a program that is linked with a static library has it. Throws Error, with a
// sentence for the user, in a process with another LibTorch than the one this was compiled against: there nothing is
// installed.
void need_installed();

}  // namespace reprise::internal
