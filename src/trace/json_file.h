// Whole files, read and written at once, and what kind of file one is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "reprise/trace/error.h"

namespace reprise::internal {

// Throws BadInput that names the file and what is wrong with it.
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

// Puts the text into a new file beside the wanted one and then in its place, so that nobody ever sees half a file and
// an old one survives a failure. What is no regular file (a pipe, /dev/stdout) is written to directly. Throws Error
// that names the file and the reason.
void write_text(const std::filesystem::path& path, std::string_view text);

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

// By the keys on top: `format`, or `cost`, `size` and `edges`. Checks the version too. Throws BadInput for any other
// file.
[[nodiscard]] FileKind kind_of(std::string_view json);

}  // namespace reprise::internal
