#include "trace/json_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <system_error>

#include "trace/json_reader.h"
#include "trace/printable.h"

namespace reprise::internal {
namespace {

constexpr std::int64_t version_read = 1;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Returns what an errno means. Not std::strerror: another thread may be using its text.
std::string message_of(int code) {
  return std::generic_category().message(code);
}

[[noreturn]] void cannot_read(const std::filesystem::path& path, const std::string& reason) {
  throw BadInput(path.string(), "", "cannot be read: " + reason);
}

// Reads to the end. `size` is a hint, as pipes have none.
std::string read_all(const std::filesystem::path& path, std::FILE* file, std::size_t size) {
  std::string text;
  std::size_t used = 0;
  text.resize(size);
  while (true) {
    if (used == text.size()) text.resize(std::max<std::size_t>(65536, 2 * text.size()));
    const std::size_t got = std::fread(text.data() + used, 1, text.size() - used, file);
    used += got;
    if (got == 0) break;
  }
  if (std::ferror(file)) cannot_read(path, message_of(errno));
  text.resize(used);
  return text;
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw BadInput(path.string(), "", "it is a folder, not a file");
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) cannot_read(path, message_of(errno));
  const auto size = std::filesystem::file_size(path, ignored);
  return read_all(path, file.get(), ignored ? 0 : static_cast<std::size_t>(size) + 1);
}

// Opens a pipe without waiting for its other end, and refuses it like everything else that is not a file.
std::string read_small_file(const std::filesystem::path& path, std::size_t most_bytes) {
  const int number = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (number < 0) cannot_read(path, message_of(errno));
  File file(::fdopen(number, "rb"));
  if (!file) {
    ::close(number);
    cannot_read(path, message_of(errno));
  }
  struct stat status = {};
  if (::fstat(number, &status) != 0) cannot_read(path, message_of(errno));
  if (!S_ISREG(status.st_mode)) cannot_read(path, "it is no regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > most_bytes) cannot_read(path, fmt::format("it has {} bytes, more than {}", size, most_bytes));
  return read_all(path, file.get(), size + 1);
}

void write_text(const std::filesystem::path& path, std::string_view text, WholeFile::Kind kind) {
  WholeFile file(path, kind);
  file.write(text);
  file.commit();
}

FileKind kind_of(std::string_view json) {
  JsonReader reader(json);
  if (reader.peek() != JsonReader::Kind::object)
    reader.fail("neither a trace nor a plan nor a graph: no object on top");
  std::optional<FileKind> kind;
  std::optional<std::string> foreign;
  std::optional<JsonReader> version;  // in front of it; read only if the file is ours
  bool graph = false;
  reader.begin_object();
  while (!(kind && version) && reader.next_key()) {
    const std::string& key = reader.key();
    if (key == "format" && !kind && reader.peek() == JsonReader::Kind::string) {
      const std::string format = reader.string();
      if (format == "reprise-trace") kind = FileKind::trace;
      if (format == "reprise-plan") kind = FileKind::plan;
      if (!kind) foreign = format;
    } else {
      if (key == "version" && !version) version = reader;
      graph = graph || key == "cost" || key == "size" || key == "edges";
      reader.skip();
    }
  }
  if (!kind && graph) return FileKind::graph;
  if (!kind && foreign) throw BadInput("", "format", fmt::format("'{}' is not a known format", printable(*foreign)));
  if (!kind)
    throw BadInput("", "", "neither a trace nor a plan nor a graph: no 'format', no 'cost', 'size' and 'edges'");
  if (!version) throw BadInput("", "version", "it is missing");
  if (const std::int64_t found = version->integer(); found != version_read) {
    throw BadInput("", "version", fmt::format("{} is not supported, only {}", found, version_read));
  }
  return *kind;
}

}  // namespace reprise::internal
