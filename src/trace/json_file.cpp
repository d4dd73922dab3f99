#include "trace/json_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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

[[noreturn]] void cannot_write(const std::filesystem::path& path, const std::string& reason) {
  throw Error(fmt::format("{}: cannot be written: {}", path.string(), reason));
}

// What an errno means. Not std::strerror: another thread may be using its text.
std::string message_of(int code) {
  return std::generic_category().message(code);
}

// 0, or errno.
int write_all(const std::filesystem::path& path, const char* mode, std::string_view text) {
  File file(std::fopen(path.c_str(), mode));
  if (!file) return errno;
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size()) return errno;
  return std::fclose(file.release()) == 0 ? 0 : errno;
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw BadInput(path.string(), "", "it is a folder, not a file");
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) throw BadInput(path.string(), "", fmt::format("cannot be read: {}", message_of(errno)));
  std::string text;
  const auto size = std::filesystem::file_size(path, ignored);  // a hint: pipes have none
  std::size_t used = 0;
  text.resize(ignored ? 0 : static_cast<std::size_t>(size) + 1);
  while (true) {
    if (used == text.size()) text.resize(std::max<std::size_t>(65536, 2 * text.size()));
    const std::size_t got = std::fread(text.data() + used, 1, text.size() - used, file.get());
    used += got;
    if (got == 0) break;
  }
  if (std::ferror(file.get())) {
    throw BadInput(path.string(), "", fmt::format("cannot be read: {}", message_of(errno)));
  }
  text.resize(used);
  return text;
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) cannot_write(path, "it is a folder");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    if (const int code = write_all(path, "wb", text)) cannot_write(path, message_of(code));
    return;
  }
  // Through a link to the file it stands for, so that the link stays one.
  std::filesystem::path target = path;
  if (std::filesystem::exists(status)) target = std::filesystem::canonical(path, error);
  if (error && std::filesystem::exists(status)) cannot_write(path, error.message());
  if (std::filesystem::exists(status) && access(target.c_str(), W_OK) != 0) cannot_write(path, message_of(errno));
  static std::atomic<unsigned> writes = 0;  // several threads may write the same file
  std::filesystem::path beside;
  int code = EEXIST;
  while (code == EEXIST) {  // left there by somebody else
    beside = target;
    beside += fmt::format(".{}-{}.new", getpid(), writes++);
    code = write_all(beside, "wbx", text);
  }
  if (code == 0) {
    if (std::filesystem::exists(status)) std::filesystem::permissions(beside, status.permissions(), error);
    std::filesystem::rename(beside, target, error);
    code = error.value();
  }
  if (code == 0) return;
  std::filesystem::remove(beside, error);
  cannot_write(path, message_of(code));
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
  if (!kind && foreign) throw BadInput("", "format", fmt::format("'{}' is not known here", printable(*foreign)));
  if (!kind)
    throw BadInput("", "", "neither a trace nor a plan nor a graph: no 'format', no 'cost', 'size' and 'edges'");
  if (!version) throw BadInput("", "version", "it is missing");
  if (const std::int64_t found = version->integer(); found != version_read) {
    throw BadInput("", "version", fmt::format("{} is not known here, only {}", found, version_read));
  }
  return *kind;
}

}  // namespace reprise::internal
