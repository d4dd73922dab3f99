// A folder of kept values that somebody has written on purpose, so that all checksums are right: a store reads every
// value, or refuses; a chain goes on with the pass that is there, or refuses.
//
// An input has files, one after the other: bytes of the description, in 2 bytes | the description without the number of
// its bytes, which comes first, and without its checksum, which comes last (store/kept_value.h) | coded bytes, in 2
// bytes | these
#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "chain/toy.h"
#include "fuzz.h"
#include "reprise/store/store.h"
#include "store/disk.h"
#include "store/ledger.h"

namespace reprise {
namespace {

// ---- a file system in memory, because what is kept is synced --------------------------------------------------------

class File : public OpenFile {
 public:
  using Content = std::vector<std::byte>;
  explicit File(std::shared_ptr<Content> content) : content_(std::move(content)) {}
  [[nodiscard]] std::size_t write(std::span<const std::byte> bytes) override {
    content_->insert(content_->end(), bytes.begin(), bytes.end());
    return bytes.size();
  }
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) override {
    if (offset >= content_->size()) return 0;
    const std::size_t count = std::min<std::size_t>(bytes.size(), content_->size() - offset);
    std::memcpy(bytes.data(), content_->data() + offset, count);
    return count;
  }
  void close() override {}

 private:
  const std::shared_ptr<Content> content_;
};

struct Contents {
  std::map<std::string, std::shared_ptr<File::Content>> files;
  std::map<std::string, std::shared_ptr<Contents>> folders;
};

class FolderInMemory : public Folder {
 public:
  explicit FolderInMemory(std::shared_ptr<Contents> contents) : contents_(std::move(contents)) {}
  [[nodiscard]] std::vector<FolderEntry> list() override {
    std::vector<FolderEntry> entries;
    for (const auto& [name, file] : contents_->files) entries.push_back({name, false});
    for (const auto& [name, folder] : contents_->folders) entries.push_back({name, true});
    return entries;
  }
  [[nodiscard]] std::unique_ptr<Folder> make_folder(const std::string& name) override {
    auto& made = contents_->folders[name];
    if (made) throw FileError("make", name, EEXIST);
    made = std::make_shared<Contents>();
    return std::make_unique<FolderInMemory>(made);
  }
  [[nodiscard]] std::unique_ptr<Folder> open_folder(const std::string& name) override {
    const auto found = contents_->folders.find(name);
    if (found == contents_->folders.end()) throw FileError("open", name, ENOENT);
    return std::make_unique<FolderInMemory>(found->second);
  }
  void remove_folder(const std::string& name) override { contents_->folders.erase(name); }
  void remove_file(const std::string& name) override { contents_->files.erase(name); }
  void rename_file(const std::string& from, const std::string& to) override {
    auto file = contents_->files.extract(from);
    if (!file) throw FileError("rename", from, ENOENT);
    contents_->files[to] = file.mapped();
  }
  [[nodiscard]] std::unique_ptr<FileLock> try_lock(const std::string& name) override {
    contents_->files.try_emplace(name, std::make_shared<File::Content>());
    return std::make_unique<FileLock>();
  }
  [[nodiscard]] std::unique_ptr<OpenFile> create(const std::string& name) override {
    const auto [at, is_new] = contents_->files.try_emplace(name, std::make_shared<File::Content>());
    if (!is_new) throw FileError("create", name, EEXIST);
    return std::make_unique<File>(at->second);
  }
  [[nodiscard]] std::unique_ptr<OpenFile> open(const std::string& name) override {
    const auto found = contents_->files.find(name);
    if (found == contents_->files.end()) throw FileError("open", name, ENOENT);
    return std::make_unique<File>(found->second);
  }

 private:
  const std::shared_ptr<Contents> contents_;
};

class FilesInMemory : public FileSystem {
 public:
  [[nodiscard]] std::unique_ptr<Folder> open_folder(const std::filesystem::path&) override {
    return std::make_unique<FolderInMemory>(contents_);
  }

 private:
  const std::shared_ptr<Contents> contents_ = std::make_shared<Contents>();
};

// ---- the folder, and who uses it ------------------------------------------------------------------------------------

template <class T>
void append(std::vector<std::byte>& text, T number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  text.insert(text.end(), bytes.begin(), bytes.end());
}

void write_folder(FileSystem& files, fuzz::Bytes input) {
  internal::Ledger ledger(largest_bytes);
  internal::Disk disk(files, "folder", true);
  std::vector<std::shared_ptr<internal::DiskFile>> written;
  while (!input.empty()) {
    const auto said = input.take(input.number<std::uint16_t>());
    std::vector<std::byte> description;
    append<std::uint64_t>(description, said.size() + 16);
    description.insert(description.end(), said.begin(), said.end());
    append<std::uint64_t>(description, XXH3_64bits(description.data(), description.size()));
    const auto coded = input.take(input.number<std::uint16_t>());
    written.push_back(disk.write("value", coded, *ledger.try_reserve(1), description));
  }
  disk.leave_files();
}

void read_everything(FileSystem& files) {
  try {
    Store store({.memory = 1 << 20, .disk = DiskTier{.folder = "folder", .keep = true}, .files = &files});
    for (const std::string& key : store.keys()) {
      try {
        (void)store.get(key);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

void go_on(FileSystem& files) {
  static const testing::Toy toy;
  constexpr int layers = 6;
  try {
    auto chain = toy.chain(layers);
    chain.schedule(schedule::every(2));
    internal::set_file_system(chain, &files);
    chain.disk({.folder = "folder", .keep = true});
    if (!chain.resume().found) return;
    const auto result = chain.forward(testing::some_numbers(4, 1));
    fuzz::require(result.size() == 4, "a pass that goes on has a result of the right size");
    fuzz::require(chain.backward(testing::some_numbers(4, 2)).size() == 4, "and such a gradient");
  } catch (const Error&) {
  }
}

}  // namespace
}  // namespace reprise

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto use : {reprise::read_everything, reprise::go_on}) {
    reprise::FilesInMemory files;
    reprise::write_folder(files, {data, size});
    use(files);
  }
  return 0;
}
