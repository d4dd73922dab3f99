// JSON that is made of nlohmann's objects, as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "trace/printable.h"

namespace reprise::internal {

// Returns the object on one line, which a terminal shows as it is. Names in a trace made by hand can be anything: bytes
// that are not UTF-8 are replaced, so what is printed is always JSON.
inline std::string dump_json(const nlohmann::ordered_json& json) {
  return printable_json(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace reprise::internal
