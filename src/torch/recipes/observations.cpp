#include "torch/recipes/observations.h"

#include <algorithm>

#include "torch/libtorch/bytes_of.h"

namespace reprise::internal {

void Observations::add_event(const char* name, std::uint64_t hash) {
  const auto device = std::ranges::lower_bound(names, hash, {}, &EventName::hash);
  if (device == names.end() || device->hash != hash) names.insert(device, {hash, name});
}

std::string_view Observations::event_name(Id moment) const {
  if (static_cast<std::size_t>(moment) >= moments.size() || moments[moment].op >= 0) return {};
  const auto found = std::ranges::lower_bound(names, moments[moment].name, {}, &EventName::hash);
  return found != names.end() && found->hash == moments[moment].name ? found->text : std::string_view();
}

Observations Observations::before(Id moment) const {
  Observations copy;
  copy.moments.assign(moments.begin(), moments.begin() + moment);
  copy.needs.assign(needs.begin(), std::ranges::lower_bound(needs, moment, {}, &Need::moment));
  copy.names = names;
  copy.moment_of = moment_of;
  std::erase_if(copy.moment_of, [&](Id at) { return at >= moment; });
  copy.released = released;
  for (Id& at : copy.released) {
    if (at >= moment - 1) at = -1;
  }
  copy.forms = forms;
  return copy;
}

void Observations::shrink() {
  const auto shrink = [](auto&... lists) { (lists.shrink_to_fit(), ...); };
  shrink(moments, needs, names, moment_of, released, forms, watched);
}

Bytes Observations::bytes() const {
  constexpr Bytes behind_name = 32;
  return bytes_of(moments, needs, names, moment_of, released, forms, watched) +
         static_cast<Bytes>(names.size()) * behind_name;
}

}  // namespace reprise::internal
