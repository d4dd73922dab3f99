#include "program.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

namespace reprise::tools {
namespace {

bool can_be_executed(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// ---- its headers ----

struct Headers {
  enum class Kind { script, foreign, fixed, dynamic } kind = Kind::foreign;
  std::string loader;  // if dynamic: the system's loader that it names
};

Headers read_headers(const std::filesystem::path& program) {
  std::ifstream file(program, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (file.gcount() >= 2 && std::memcmp(&header, "#!", 2) == 0) return {Headers::Kind::script, {}};
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return {Headers::Kind::foreign, {}};
  }
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  file.read(reinterpret_cast<char*>(segments.data()),
            static_cast<std::streamsize>(segments.size() * sizeof(Elf64_Phdr)));
  for (const Elf64_Phdr& segment : segments) {
    if (!file || segment.p_type != PT_INTERP || segment.p_filesz > 4096) continue;
    std::string loader(segment.p_filesz, '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(loader.data(), static_cast<std::streamsize>(loader.size()));
    loader.resize(std::strlen(loader.c_str()));
    return {Headers::Kind::dynamic, loader};
  }
  return {Headers::Kind::fixed, {}};
}

// Returns whether a program has a section of this name, as those have that Reprise is linked into.
bool has_section(const std::filesystem::path& program, std::string_view name) {
  std::ifstream file(program, std::ios::binary);
  const auto read_at = [&](std::uint64_t offset, void* to, std::size_t bytes) {
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  };
  Elf64_Ehdr header{};
  read_at(0, &header, sizeof header);
  if (!file || header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum) return false;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  read_at(header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr));
  std::string found(name.size() + 1, ' ');
  for (const Elf64_Shdr& section : sections) {
    if (!file) return false;
    read_at(sections[header.e_shstrndx].sh_offset + section.sh_name, found.data(), found.size());
    if (std::string_view(found.c_str()) == name) return true;
    file.clear();  // the last name may be shorter than this one
  }
  return false;
}

// Returns whether the system starts a program with rights that its caller does not have: LD_PRELOAD is ignored then.
bool gains_rights(const std::filesystem::path& program) {
  struct stat info {};
  if (stat(program.c_str(), &info) != 0) return false;
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != getuid()) return true;
  if ((info.st_mode & S_ISGID) != 0 && info.st_gid != getgid()) return true;
  return getuid() != 0 && getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
}

// ---- what the loader says ----

// Both outputs of a command; its exit code is not looked at.
std::string output_of(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    for (const std::string& variable : environment) putenv(strdup(variable.c_str()));
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(strdup(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = read(ends[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return text;
}

// The first line that has all of these words in it; empty: none has.
std::string line_with(const std::string& text, std::initializer_list<std::string_view> words) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    bool all = true;
    for (const std::string_view word : words) all &= line.find(word) != std::string::npos;
    if (all) return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  }
  return {};
}

}  // namespace

std::optional<std::filesystem::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return can_be_executed(name) ? std::optional<std::filesystem::path>(name) : std::nullopt;
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto candidate = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (can_be_executed(candidate)) return candidate;
  }
  return std::nullopt;
}

std::optional<std::string> preload_obstacle(const std::filesystem::path& library) {
  const std::string path = library.string();
  // What the loader reads there: paths that end at blanks and colons, with $ORIGIN and the like to be replaced.
  if (library.is_absolute() && path.find_first_of(" :$") == std::string::npos) return std::nullopt;
  return fmt::format(
      "{} cannot be preloaded, because LD_PRELOAD has no way to name it: move Reprise to a folder whose path has no "
      "blanks, colons and dollar signs",
      path);
}

std::string with_preloaded(const std::filesystem::path& library) {
  const char* const others = std::getenv("LD_PRELOAD");
  return library.string() + (others && *others ? std::string(":") + others : "");
}

std::optional<std::string> obstacle(const std::filesystem::path& program, const std::filesystem::path& library) {
  const Headers headers = read_headers(program);
  switch (headers.kind) {
    case Headers::Kind::script:
      return fmt::format("{} is a script: put `reprise run` into it, in front of the program that trains",
                         program.string());
    case Headers::Kind::foreign: return fmt::format("{} is no 64-bit program of this system", program.string());
    case Headers::Kind::fixed:
      return fmt::format(
          "{} is statically linked, and nothing can be loaded into it: link it to LibTorch's shared "
          "libraries, or use a reprise::Session in it",
          program.string());
    case Headers::Kind::dynamic: break;
  }
  if (gains_rights(program)) {
    return fmt::format(
        "{} is started with rights of its own (setuid, setgid or file capabilities), so the system loads nothing into "
        "it: run it as its owner, or use a reprise::Session in it",
        program.string());
  }
  const std::string loaded = output_of({headers.loader, "--list", program.string()}, {});
  const std::string libtorch = line_with(loaded, {"libtorch_cpu.so"});
  if (libtorch.empty()) return fmt::format("{} is not linked to LibTorch (libtorch_cpu.so)", program.string());
  if (libtorch.find("not found") != std::string::npos) {
    return fmt::format(
        "{} is linked to LibTorch, but the system does not find it: {}; LD_LIBRARY_PATH can say where "
        "it is",
        program.string(), libtorch);
  }
  if (has_section(program, "reprise_linked") || !line_with(loaded, {"libreprise_torch.so"}).empty()) {
    return fmt::format("{} has Reprise linked in: give the budget to its reprise::Session", program.string());
  }
  // The loader binds every symbol, as it would do at the start, and tells what is missing.
  const std::string bound = output_of({program.string()}, {"LD_PRELOAD=" + with_preloaded(library),
                                                           "LD_TRACE_LOADED_OBJECTS=1", "LD_WARN=1", "LD_BIND_NOW=1"});
  const std::string missing = line_with(bound, {"undefined symbol", library.filename().string()});
  if (missing.empty()) return std::nullopt;
  return fmt::format("{} is linked to a LibTorch that this Reprise was not built for ({}; {})", program.string(),
                     libtorch, missing);
}

}  // namespace reprise::tools
