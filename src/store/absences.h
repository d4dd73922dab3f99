// Remembers why values that were offered to a store are not in it, for the text of NotStored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace reprise::internal {

// Remembers the last ones only, so that it does not grow with the keys that were ever offered.
class Absences {
 public:
  enum class Why : std::uint8_t {
    rule,          // `remember` returned false
    switched_off,  // the store was
    no_room,       // and nothing may be evicted
    evicted,       // it was stored, and evicted for others
  };
  static constexpr std::size_t most = 1024;

  // What is known about the key is replaced. Nothing is remembered if there is no memory for it.
  void add(const std::string& key, Why, double cost) noexcept;
  // The value is there, or was taken away by the caller.
  void remove(const std::string& key);
  void clear();

  // Returns a sentence's end: ": it was offered and not remembered, because ...". Empty if nothing is known.
  [[nodiscard]] std::string text(const std::string& key) const;

 private:
  struct Absence {
    Why why;
    double cost;
    std::uint64_t number;
  };
  std::map<std::string, Absence, std::less<>> by_key_;
  std::deque<std::pair<std::uint64_t, std::string>> order_;  // oldest first; some are outdated
  std::uint64_t next_ = 0;
};

}  // namespace reprise::internal
