// The places for states that a chain does not hold as they are: coded in memory, or on a disk.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "reprise/store/store.h"

namespace reprise {

enum class Place : std::uint8_t { packed, disk };

// The bytes and times of putting a state somewhere and getting it back.
struct PlaceTerms {
  Bytes bytes = 0;
  double put_seconds = 0;
  double get_seconds = 0;
};

// Keeps states by their number, in one store for each place.
class StatePlaces {
 public:
  StatePlaces();
  ~StatePlaces();

  // Sets the codec of states that are put from now on. Null: exact.
  void codec(const Codec*);
  // Sets the disk. `transit` is the bytes of memory for states on their way to and from it; empty: four times the first
  // state.
  void disk(DiskTier, std::optional<Bytes> transit, FileSystem*);
  [[nodiscard]] const Codec* codec() const { return codec_; }
  [[nodiscard]] bool has_disk() const { return disk_tier_.has_value(); }

  // Puts a state into a place. Writing to a disk goes on in the background; the next call throws if it failed.
  void put(Place, Id state, const ArrayView&);
  // Gets a state back. If `last`, it need not stay there.
  [[nodiscard]] Array get(Place, Id state, bool last);
  void erase(Place, Id state);
  [[nodiscard]] bool contains(Place, Id state) const;
  // Announces the states that will be wanted from the disk, in this order.
  void prefetch(std::span<const Id> states);
  void clear() noexcept;
  // Measures putting this array and getting it back, in a store of its own.
  [[nodiscard]] PlaceTerms measure(Place, const ArrayView&) const;

  [[nodiscard]] Bytes memory() const;  // bytes in memory, on their way included
  [[nodiscard]] Bytes on_disk() const;
  [[nodiscard]] StoreStatistics statistics(Place) const;

 private:
  [[nodiscard]] Store& store(Place, const ArrayView&);
  [[nodiscard]] Store* existing(Place) const;

  const Codec* codec_ = nullptr;
  std::optional<DiskTier> disk_tier_;
  std::optional<Bytes> transit_;
  FileSystem* files_ = nullptr;
  std::unique_ptr<Store> packed_, disk_;
};

}  // namespace reprise
