#include "torch/recipes/pass_profile.h"

#include <algorithm>

#include "torch/libtorch/bytes_of.h"

namespace reprise::internal {

void PassProfile::add_event(const char* name, std::uint64_t hash) {
  const auto found = std::ranges::lower_bound(names, hash, {}, &EventName::hash);
  if (found == names.end() || found->hash != hash) names.insert(found, {hash, name});
}

std::string_view PassProfile::event_name(Id moment) const {
  if (static_cast<std::size_t>(moment) >= moments.size() || moments[moment].op >= 0) return {};
  const auto found = std::ranges::lower_bound(names, moments[moment].name, {}, &EventName::hash);
  return found != names.end() && found->hash == moments[moment].name ? found->text : std::string_view();
}

std::span<const Need> PassProfile::needs_of(Id moment) const {
  const auto found = std::ranges::equal_range(needs, moment, {}, &Need::moment);
  return {found.begin(), found.end()};
}

const PackedForm* PassProfile::form_of(Id value) const {
  return static_cast<std::size_t>(value) < forms.size() && forms[value] ? &*forms[value] : nullptr;
}

float& PassProfile::cost_at(Id moment) {
  ProfiledMoment& at = moments[moment];
  return at.op < 0 ? at.event_cost : costs[at.op];
}

double PassProfile::seconds() const {
  double microseconds = 0;
  for (const float cost : costs) microseconds += static_cast<double>(cost);
  for (const ProfiledMoment& moment : moments) microseconds += static_cast<double>(moment.event_cost);
  return 1e-6 * microseconds;
}

PassProfile PassProfile::before(Id moment) const {
  PassProfile copy;
  copy.moments.assign(moments.begin(), moments.begin() + moment);
  copy.needs.assign(needs.begin(), std::ranges::lower_bound(needs, moment, {}, &Need::moment));
  copy.names = names;
  copy.moment_of = moment_of;
  std::erase_if(copy.moment_of, [&](Id at) { return at >= moment; });
  copy.costs.assign(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(copy.moment_of.size()));
  copy.other.assign(other.begin(), other.begin() + moment);
  copy.released = released;
  for (Id& at : copy.released) {
    if (at >= moment - 1) at = -1;
  }
  copy.forms = forms;
  return copy;
}

void PassProfile::shrink() {
  const auto shrink = [](auto&... lists) { (lists.shrink_to_fit(), ...); };
  shrink(moments, needs, names, moment_of, costs, other, released, forms);
}

Bytes PassProfile::bytes() const {
  constexpr Bytes behind_name = 32;
  return bytes_of(moments, needs, names, moment_of, costs, other, released, forms) +
         static_cast<Bytes>(names.size()) * behind_name;
}

}  // namespace reprise::internal
