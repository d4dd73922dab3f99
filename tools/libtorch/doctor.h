// The second half of `reprise doctor`: LibTorch, its allocator, and whether a session works.
#pragma once

#include "doctor_options.h"

namespace reprise::tools {

// Prints what it finds and returns the exit code.
[[nodiscard]] int examine_libtorch(const DoctorOptions&);

}  // namespace reprise::tools
