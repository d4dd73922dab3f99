// Draws: the random numbers of operators, known exactly whoever else draws.
//
// Every operator that draws comes down to a few whose kernels lock a generator: normal_, bernoulli_, multinomial. While
// the draws of a thread are recorded, such an operator gets a private generator that continues the stream of the one it
// was meant for. That one is locked meanwhile, as the kernel itself would do, and then goes on from where the private
// one ended. So the state before and after every draw is known, the program's streams are what they would be, and other
// threads draw as they always did.
//
// A tape is what one operator drew. To replay the operator is to play its tape: each draw starts from the state that
// was recorded, in a private generator. No generator that the program can see is touched, and a draw that does not end
// where the recorded one ended is an error.
//
// On accelerators, some operators (native_dropout) draw from the device's generator without having it among their
// arguments. Then it is that one which is watched, and which is set to the recorded state while a tape is played. No
// thread that is watched draws from it in between; another one may, and then what was drawn is not known.
//
// A draw that passes by the dispatcher (a kernel of the user's own that asks the default generator itself) is not seen.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "torch/libtorch/libtorch.h"

namespace reprise::internal::draws {

struct Draw {
  libtorch::RandomState before;
  std::uint64_t after = 0;  // a fingerprint of the state it left
};
using Tape = std::vector<Draw>;

// What was played did not go as it was recorded.
class OffTheTape : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Sees to operators that libraries have brought since the last time. Before anything is recorded or played.
void prepare();

// Records what this thread draws while it exists. What happens in an inner recorder is also recorded by those around
// it.
class Recorder {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] const Tape& tape() const { return tape_; }
  [[nodiscard]] Tape take_tape() { return std::move(tape_); }
  // Returns whether something was drawn that no tape can say: from a generator whose state is not known.
  [[nodiscard]] bool incomplete() const { return incomplete_; }

 private:
  friend class Watcher;
  Tape tape_;
  bool incomplete_ = false;
  Recorder* const outer_;
};

// Plays a tape to this thread while it exists: operators draw from it and from nothing else.
class Player {
 public:
  explicit Player(const Tape&);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // Throws OffTheTape if less was drawn than was recorded.
  void finish() const;

 private:
  friend class Watcher;
  const Tape& tape_;
  std::size_t next_ = 0;
  Player* const outer_;
};

}  // namespace reprise::internal::draws
