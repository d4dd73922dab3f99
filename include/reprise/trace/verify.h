// When a value that was made again is compared with the one that was evicted.
#pragma once

namespace reprise {

enum class Verify {
  never,       // nothing is compared: what makes values is trusted
  first_time,  // the first time that each of them is made again
  always,      // every time
};

}  // namespace reprise
