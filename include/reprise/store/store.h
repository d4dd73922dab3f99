// A store keeps values by key, in memory and on disk, each within a hard budget in bytes.
//
//   Store store({.memory = 64 << 20, .disk = DiskTier{.folder = "scratch", .budget = 1 << 30}});
//   store.put("layer 3", activation, 2.5);  // 2.5: what recomputing it would cost
//   const Array back = store.take("layer 3");
//
// A value is an array of numbers, kept in the form that a codec makes. Two rules decide: `remember` chooses which
// values are kept at all, by default all of them, and `evict` chooses which value is evicted from the memory tier when
// the next value does not fit. A value evicted from memory moves to disk if there is one, and is dropped otherwise. A
// value evicted from disk is dropped.
//
// Bytes are the bytes really held: coded values, also while they are written to disk or still read, and the buffers in
// which values are being coded. They are reserved before they are allocated and released after they are freed, so that
// a tier never passes its budget, not even for a moment. The arrays that `get` and `take` return belong to the caller
// and do not count. When memory has no room for it, the buffer through which a coded value comes from disk does not
// count either: reading evicts nothing and never fails for lack of room.
//
// Every function may be called from any thread, and from a rule of the caller's (but not from a codec). No lock is held
// while a codec, a rule of the caller's, or reading and writing a file runs, and an operation on one key never waits
// for the disk's work on another, unless it needs the room that this work makes.
//
// After fork(), parent and child have a store each, and each keeps its own account of bytes. The child reads what was
// in memory, and what is on disk as long as its parent has not removed it. It never changes or removes a file of its
// parent's, and values that it moves to disk go into a folder of its own. Only codecs, rules and file systems must not
// call fork().
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/export.h"
#include "reprise/store/array.h"
#include "reprise/store/codec.h"
#include "reprise/store/file_system.h"
#include "reprise/trace/error.h"
#include "reprise/trace/trace.h"

namespace reprise {

namespace internal {
class StoreState;
}  // namespace internal

// A key is a text or a whole number; 7 and "7" are the same key.
struct Key {
  Key(std::integral auto number) : text(std::to_string(number)) {}
  Key(std::string name) : text(std::move(name)) {}
  Key(const char* name) : text(name) {}
  std::string text;
};

// ---- which values to remember ---------------------------------------------------------------------------------------

// What a rule knows about a value that is put.
struct Offer {
  const std::string& key;
  std::uint64_t number;  // of this put, counted from 0, whether or not earlier ones were remembered
  Bytes bytes;           // not coded
  double cost;           // of recomputing it
};
// A rule returns true if the value is to be kept.
using Remember = std::function<bool(const Offer&)>;

namespace remember {
[[nodiscard]] REPRISE_EXPORT Remember all();
[[nodiscard]] REPRISE_EXPORT Remember none();
// Keeps the first value, and every n-th after it, by the order of the puts. Throws BadOption for zero.
[[nodiscard]] REPRISE_EXPORT Remember every(std::uint64_t n);
// Keeps values whose key is a multiple of n, in whatever order they are put. Throws BadOption for zero; `put` throws it
// for a key that is no whole number.
[[nodiscard]] REPRISE_EXPORT Remember every_key(std::uint64_t n);
// Keeps values that cost at least this much to recompute.
[[nodiscard]] REPRISE_EXPORT Remember costly(double threshold = 100);
}  // namespace remember

// ---- what to evict --------------------------------------------------------------------------------------------------

enum class Evict : std::uint8_t {
  oldest,    // the one put first
  cheapest,  // the one with the least recompute cost for each byte it holds; of equal ones the oldest
  nothing,   // the new value is refused
};
[[nodiscard]] REPRISE_EXPORT const char* name(Evict);

enum class TierKind : std::uint8_t { memory, disk };
[[nodiscard]] REPRISE_EXPORT const char* name(TierKind);

// ---- options --------------------------------------------------------------------------------------------------------

// Files are for this user only (mode 0600, in folders of mode 0700) and are not encrypted. `folder` itself may be a
// link and belong to anyone, /tmp for example; what the store makes in it has to belong to the effective user and must
// not be writable by others, or it is not used. After SIGKILL or a power failure the files stay until the next store is
// made in `folder`. On a file system that several machines can use (NFS, SMB, FUSE, Lustre and all that is not known to
// be local), that store removes them only if the same machine made them and was not restarted since.
struct DiskTier {
  std::filesystem::path folder =
      {};  // has to be given and to exist; the store makes a folder of its own in it and removes it at the end
  Bytes budget = largest_bytes;  // of all files together; a file has 32 bytes more than the coded value
  // True: the values outlive the store and its process. They are in the folder reprise-kept of `folder`, which belongs
  // to one store at a time; a store that is made there has them from the start, on disk. A value is safe when it is on
  // disk: offload() and wait() see to that, and so does the end of the store, as far as writing succeeds. A kept file
  // is larger by a description of the value, and it stays when the value is prefetched. Values that were coded by a
  // codec of the caller's are found again if the store is made with that codec.
  //
  // What is in reprise-kept is trusted: checksums detect damage, and not what was written on purpose. A folder or a
  // file there that is a link, belongs to another user or can be written by others is a DiskError. Where locks are
  // known to one machine only, it is for the caller to use the folder from one machine at a time.
  bool keep = false;
};

struct StoreOptions {
  Bytes memory = largest_bytes;       // budget of the memory tier
  std::optional<DiskTier> disk = {};  // empty: values evicted from memory are dropped
  Remember remember = remember::all();
  Evict evict = Evict::oldest;
  // Null: exact. A value is kept exactly if the codec cannot code it, or if Codec::room() for it, which is counted
  // while it is coded, is more than `memory`: zstd's is some 30 KB to 600 KB more than the value.
  const Codec* codec = nullptr;
  FileSystem* files = nullptr;  // null: the machine's; for tests
};

// ---- results --------------------------------------------------------------------------------------------------------

enum class PutResult : std::uint8_t {
  stored,
  not_remembered,  // `remember` returned false, or the store is switched off
  refused,         // the value does not fit now, and nothing may be evicted for it
};
[[nodiscard]] REPRISE_EXPORT const char* name(PutResult);

struct Description {
  std::uint64_t number = 0;  // of the put, as in Offer
  Bytes bytes = 0;           // held, coded
  Bytes plain_bytes = 0;     // of the array
  double cost = 0;
  TierKind tier = TierKind::memory;
  std::string codec;
  Element element = Element::float32;
  Shape shape;
};
// Print on one line, and on a line for each number.
REPRISE_EXPORT std::ostream& operator<<(std::ostream&, const Description&);

struct StoreStatistics {
  std::uint64_t stored_ever = 0;  // values that were stored
  std::uint64_t in_memory = 0;    // values in the memory tier now
  std::uint64_t on_disk = 0;      // values on disk now
  std::uint64_t puts = 0;         // calls
  std::uint64_t gets = 0;         // calls of get, take and find
  std::uint64_t hits = 0;         // of them, found
  std::uint64_t misses = 0;       // of them, not found
  std::uint64_t evictions = 0;    // values evicted from memory: moved to disk or dropped
  std::uint64_t dropped = 0;      // values evicted for good, from memory or disk
  std::uint64_t moves_to_disk = 0;
  std::uint64_t moves_to_memory = 0;  // by prefetch
  std::uint64_t not_remembered = 0;   // puts with this result
  std::uint64_t refused = 0;          // puts that did not fit: with this result, or DoesNotFit
  std::uint64_t kept_exactly = 0;     // values stored exactly though another codec was asked for
  Bytes bytes = 0;                    // held in memory now
  Bytes peak_bytes = 0;               // the most ever held in memory
  Bytes disk_bytes = 0;               // held on disk now
  Bytes peak_disk_bytes = 0;          // the most ever held on disk
  Bytes before_coding = 0;            // bytes of all arrays that were ever stored
  Bytes after_coding = 0;             // the same, as their codecs made them
  bool operator==(const StoreStatistics&) const = default;
};
REPRISE_EXPORT std::ostream& operator<<(std::ostream&, const StoreStatistics&);

// ---- errors: all name the key, and leave everything that was stored where it was ------------------------------------

// Thrown for a value that is larger than the budget of every tier.
class REPRISE_EXPORT DoesNotFit : public Error {
 public:
  using Error::Error;
};

// Thrown if there is no value under this key. If one was offered, the message says why it is missing: the rule returned
// false, the store was switched off, or there was no room. The reason is known for the last 1024 such keys.
class REPRISE_EXPORT NotStored : public Error {
 public:
  using Error::Error;
};

// Thrown by the disk tier. Names the file or folder, the operation and the system's reason.
class REPRISE_EXPORT DiskError : public Error {
 public:
  using Error::Error;
};

// ---- the store ------------------------------------------------------------------------------------------------------

struct PutOptions {
  double cost = 0;               // of recomputing the value
  const Codec* codec = nullptr;  // null: the store's
};

class REPRISE_EXPORT Store {
 public:
  // Throws BadOption for a negative budget, a disk without a folder and an empty `remember`, DiskError if the disk's
  // folder cannot be used, and with `keep` if a file in it is damaged or not a store's, with the name of that file.
  // Removes the files that stores of killed processes left in that folder.
  explicit Store(StoreOptions = {});
  ~Store();
  // A store that was moved from can only be assigned to or destroyed. No other thread may use either store during the
  // move.
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  // Stores a copy, and replaces the value that has this key. Values are evicted one by one until the new one fits. The
  // bytes of the old value of the key count as free: it goes when the new one is complete, or before that if its bytes
  // are needed. (Only then can both be missing: the old one is gone, and the new one turns out to be more than its
  // codec can code.) Of several puts of one key at the same time, one wins.
  //
  // A value that is too large for memory goes to disk, exactly coded, without passing through memory; with
  // Evict::nothing, so does a value that memory has no room for.
  //
  // Returns whether the value was stored. The old value of the key is gone if `remember` returned false for the new
  // one, and still there if the new one was refused or the store is switched off.
  //
  // Throws DoesNotFit if the value is larger than the budgets, DiskError if the disk fails, BadOption for a cost that
  // is not a number. Then everything that was stored still is, except the values that had been evicted by then.
  PutResult put(const Key&, const ArrayView&, PutOptions = {});
  PutResult put(const Key& key, const ArrayView& array, double cost) {
    return put(key, array, PutOptions{.cost = cost});
  }

  // Returns a decoded copy. Throws NotStored; DiskError if the file cannot be read or its checksum is wrong.
  [[nodiscard]] Array get(const Key&);
  // Returns the value as `get` does, and removes it from the store, which releases its bytes.
  [[nodiscard]] Array take(const Key&);
  // Returns the value as `get` does. Empty if there is none.
  [[nodiscard]] std::optional<Array> find(const Key&);
  // Removes the value of this key, and returns whether there was one.
  bool erase(const Key&);
  // Removes everything, with the files. Statistics go on: see `reset_statistics`.
  void clear();

  // ---- ahead of time, by a thread of the store's own --------------------------------------------------------------

  // Moves these values from disk into memory, in this order, as far as there is room without evicting anything; the
  // rest is moved as room comes free. A get in the meantime waits for its own value only. Skips keys that are not there
  // or in memory already, values larger than the budget of memory, and values that cannot be read: they stay on disk,
  // and `get` throws the reason.
  void prefetch(std::span<const Key>);
  // Moves these values to disk as if they were evicted from memory, but keeps those for which there is no room on disk.
  // Goes ahead of every prefetch that is not done, and replaces one of the same key. Does nothing without a disk.
  void offload(std::span<const Key>);
  // Waits until every prefetch and offload is done, or cannot go on for lack of room. Throws the first DiskError of an
  // offload since the last call. A value whose offload failed is still in memory.
  void wait();

  // ---- questions ----------------------------------------------------------------------------------------------------

  [[nodiscard]] bool contains(const Key&) const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::vector<std::string> keys() const;  // ordered as texts
  [[nodiscard]] Bytes bytes(TierKind = TierKind::memory) const;
  [[nodiscard]] Bytes budget(TierKind = TierKind::memory) const;  // 0 for a disk that is not there
  // Returns bytes / budget; 0 for a budget of zero.
  [[nodiscard]] double utilisation(TierKind = TierKind::memory) const;
  // Describes a value without reading it. Throws NotStored.
  [[nodiscard]] Description describe(const Key&) const;
  [[nodiscard]] StoreStatistics statistics() const;
  void reset_statistics();  // counts from zero; bytes and values that are there stay counted

  // Switches the store on or off. Off: every put is `not_remembered`, and the values that are there stay.
  void enabled(bool);
  [[nodiscard]] bool enabled() const;
  void remember(Remember);
  // Returns what the store was made with, and the rule that is set now.
  [[nodiscard]] StoreOptions options() const;

 private:
  std::unique_ptr<internal::StoreState> state_;
};

}  // namespace reprise
