// What to remember and what to evict: the rules that come with a store.
#include <charconv>

#include "reprise/store/store.h"

namespace reprise {

namespace remember {

Remember all() {
  return [](const Offer&) { return true; };
}

Remember none() {
  return [](const Offer&) { return false; };
}

Remember every(std::uint64_t n) {
  if (n == 0) throw BadOption("[store] remember::every(0): has to be at least 1");
  return [n](const Offer& offer) { return offer.number % n == 0; };
}

Remember every_key(std::uint64_t n) {
  if (n == 0) throw BadOption("[store] remember::every_key(0): has to be at least 1");
  return [n](const Offer& offer) {
    std::uint64_t number = 0;  // without its sign
    const char* const end = offer.key.data() + offer.key.size();
    const auto [parsed, error] = std::from_chars(offer.key.data() + offer.key.starts_with('-'), end, number);
    if (error != std::errc() || parsed != end) {
      throw BadOption("[store] value \"" + offer.key + "\": remember::every_key needs keys that are whole numbers");
    }
    return number % n == 0;
  };
}

Remember costly(double threshold) {
  return [threshold](const Offer& offer) { return offer.cost >= threshold; };
}

}  // namespace remember

const char* name(Evict rule) {
  switch (rule) {
    case Evict::oldest: return "oldest";
    case Evict::cheapest: return "cheapest";
    case Evict::nothing: return "nothing";
  }
  return "unknown";
}

const char* name(TierKind tier) {
  switch (tier) {
    case TierKind::memory: return "memory";
    case TierKind::disk: return "disk";
  }
  return "unknown";
}

}  // namespace reprise
