// Reads and writes amounts of bytes as people do.
#pragma once

#include <string>
#include <string_view>

#include "reprise/export.h"
#include "reprise/trace/trace.h"

namespace reprise {

// Parses "1234", "512MiB", "1.5 GiB", "20KB": a decimal number, an optional space and an optional unit. KB, MB, GB and
// TB are powers of 1000, KiB, MiB, GiB and TiB of 1024; upper and lower case are the same. Parts of a byte are cut off,
// but "1.5" bytes are an error. Throws BadOption that names the text and what is expected.
[[nodiscard]] REPRISE_EXPORT Bytes parse_bytes(std::string_view text);

// Parses what `parse_bytes` does, or a multiple of `peak` with an x behind it: "0.8x" is exactly floor(0.8 * peak).
[[nodiscard]] REPRISE_EXPORT Bytes parse_budget(std::string_view text, Bytes peak);

// Formats bytes for people, with two decimals, rounded: "512 B", "1.50 GiB".
[[nodiscard]] REPRISE_EXPORT std::string format_bytes(Bytes bytes);

}  // namespace reprise
