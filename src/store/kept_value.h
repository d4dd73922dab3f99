// What a kept file says about its value, so that another process can read it.
//
// Numbers of 8 bytes in the order of the machine: bytes of the description, these included | number of the put | cost,
// a float64 | bytes of the array | element | count of dimensions | their sizes | bytes of the key | bytes of the
// codec's name; then the key, the codec's name, and XXH3 of all of it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/store/codec.h"
#include "store/value.h"

namespace reprise::internal {

[[nodiscard]] std::vector<std::byte> describe_kept(const StoredValue&);
// Returns how long such a description is.
[[nodiscard]] Bytes kept_description_bytes(std::string_view key, std::size_t dimensions, std::string_view codec);

// Returns the value that such a description is of, without its file. Throws DiskError with the file's name if it is
// none, or if its codec is neither one of Reprise's nor `own`, which may be null.
[[nodiscard]] std::shared_ptr<StoredValue> kept_value(std::span<const std::byte> description, std::size_t coded_bytes,
                                                      const std::filesystem::path& file, const Codec* own);

}  // namespace reprise::internal
