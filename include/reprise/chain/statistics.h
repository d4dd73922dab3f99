// The work of a chain in numbers, all measured and none estimated.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "reprise/export.h"
#include "reprise/trace/error.h"
#include "reprise/trace/trace.h"

namespace reprise {

class REPRISE_EXPORT ChainError : public Error {
 public:
  using Error::Error;
};

// The numbers of the pass that goes on, or of the last one; a pass begins with forward of the first layer. A state or
// tape is stored while the chain itself holds it, coded or not. While a layer runs, its input state and the state that
// it makes are also stored, unless the caller has them.
struct ChainStatistics {
  Bytes stored = 0;       // in memory now
  Bytes peak_stored = 0;  // the most in memory at any time
  Bytes not_stored = 0;   // of states that forward made, backward needs, and the chain did not store
  Bytes disk = 0;         // on disk now
  Bytes peak_disk = 0;
  std::uint64_t remembered = 0;  // states stored now, on disk included
  std::uint64_t peak_remembered = 0;
  std::uint64_t forward_calls = 0;  // of the caller's closure, replays included
  std::uint64_t replays = 0;        // of them, for a layer that had run before
  std::uint64_t backward_calls = 0;
  std::uint64_t passes = 0;  // begun, ever
  Bytes spare = 0;  // of states held to be written again, by closures that are given one to write to; not in `stored`
  bool operator==(const ChainStatistics&) const = default;
};
// Prints a line for each number.
REPRISE_EXPORT std::ostream& operator<<(std::ostream&, const ChainStatistics&);

// A tier for states that a chain does not hold as they are: coded in memory, or on a disk.
enum class StateTier : std::uint8_t { packed, disk };

struct ChainProgress {
  // `planning`: no layer has run; the chain makes its plan, and reports from time to time.
  enum class Phase : std::uint8_t { forward, replay, backward, planning };
  Phase phase = Phase::forward;
  Id position = 0;            // of the layer that has just been run
  int layer = 0;              // its number
  std::uint64_t replays = 0;  // so far
  Bytes stored = 0;           // now
  double planned = 0;         // of planning: the share of its time that is spent, 0 to 1
};
[[nodiscard]] REPRISE_EXPORT const char* name(ChainProgress::Phase);

}  // namespace reprise
