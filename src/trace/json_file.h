// Whole files, read and written at once, and what kind of file one is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "reprise/export.h"
#include "reprise/trace/error.h"
#include "trace/whole_file.h"

namespace reprise::internal {

// Throws BadInput that names the file and what is wrong with it.
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

// Does the same for a file in a folder that others may be able to write to: only reads a regular file of at most
// `most_bytes`, and follows no link.
[[nodiscard]] REPRISE_EXPORT std::string read_small_file(const std::filesystem::path& path, std::size_t most_bytes);

// Writes a file whole or not at all. Throws Error that names the file and the reason.
REPRISE_EXPORT void write_text(const std::filesystem::path& path, std::string_view text,
                               WholeFile::Kind kind = WholeFile::Kind::named);

// Reads a file and parses its text; errors get the name of the file.
template <typename Parse>
[[nodiscard]] auto parse_file(const std::filesystem::path& path, Parse parse) {
  const std::string text = read_text(path);
  try {
    return parse(text);
  } catch (const BadInput& error) {
    throw error.in_file(path.string());
  }
}

enum class FileKind { trace, plan, graph };

// Returns the kind by the keys on top: `format`, or `cost`, `size` and `edges`. Checks the version as well. Throws
// BadInput for any other file.
[[nodiscard]] FileKind kind_of(std::string_view json);

}  // namespace reprise::internal
