#include "reprise/store/codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/trace/error.h"
#include "store/comma_list.h"
#include "store/every_codec.h"

namespace reprise {
using namespace internal;

const std::vector<const Codec*>& codecs() {
  static const std::vector<const Codec*> sorted = [] {
    std::vector<const Codec*> all = every_codec();
    std::ranges::sort(all, {}, [](const Codec* codec) { return codec->name(); });
    return all;
  }();
  return sorted;
}

const Codec& codec(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Codec* known : codecs()) {
    if (known->name() == name) return *known;
    names.push_back(known->name());
  }
  throw BadOption(fmt::format("[store] there is no codec '{}', only: {}", name, comma_list(names)));
}

}  // namespace reprise
