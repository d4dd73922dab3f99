// A file that appears whole or not at all.
//
// It is written under a random name beside the wanted one, exclusively created and with its final mode, synced,
// renamed, and the folder is synced. So no process ever sees half a file, an old file survives a failure and even a
// crash of the machine, and a file or link that another user put there is never written to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "reprise/trace/error.h"

namespace reprise::internal {

class WholeFile {
 public:
  enum class Kind : std::uint8_t {
    named,      // by the user, who decides where it goes: through a link of the user's own to the file it stands for.
                // It has the mode of the file it replaces. A pipe or /dev/stdout is written to directly
    of_folder,  // one of Reprise's own in a folder: for this user only, and in place of a link
  };

  // Begins a file. This and what follows throw Error that names the file and the reason.
  explicit WholeFile(std::filesystem::path, Kind = Kind::named);
  // Removes what was not committed.
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void write(std::string_view);
  // Puts the file in its place.
  void commit();

 private:
  void find_target(Kind);
  void create_beside();
  [[noreturn]] void fail(const std::string& reason) const;

  const std::filesystem::path path_;
  std::string name_, beside_;  // in the folder; both empty: written directly
  bool replaces_ = false;
  unsigned mode_ = 0666;  // of the file that it replaces, and otherwise less the umask
  int folder_ = -1, file_ = -1;
};

}  // namespace reprise::internal
