// The recordings that are alive, and which one has which number in tags. Under the arbiter's lock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reprise::internal {

class Bindings;
class Recording;

class Recordings {
 public:
  // Returns the one of the process: never destroyed, because tensors may be freed after all static objects are gone.
  [[nodiscard]] static Recordings& of_process();

  // Its number, which no other one has had for a long time.
  [[nodiscard]] std::uint32_t add(Recording&, Bindings&);
  void remove(const Recording&);

  [[nodiscard]] std::span<Recording* const> all() const { return all_; }
  // nullptr: it is gone.
  [[nodiscard]] Bindings* bindings_of(std::uint32_t number) const;

 private:
  std::uint32_t last_ = 0;
  std::vector<Recording*> all_;
  std::vector<std::pair<std::uint32_t, Bindings*>> bindings_;  // in the same order
};

}  // namespace reprise::internal
