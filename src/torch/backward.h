// LibTorch's autograd engine, with our saved tensors and an eye on where backward begins and ends.
#pragma once

namespace reprise::internal {

// Puts the engine in the place of LibTorch's. Called when the library is loaded.
void install_engine();

}  // namespace reprise::internal
