// Where a chain puts states that are not held as they are: coded in memory, or on a disk.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "reprise/store/store.h"

namespace reprise {

enum class Place : std::uint8_t { packed, disk };

// What it takes to put a state somewhere and to get it back.
struct PlaceTerms {
  Bytes bytes = 0;
  double put_seconds = 0;
  double get_seconds = 0;
};

// States by their number, in one store for each place.
class StatePlaces {
 public:
  StatePlaces();
  ~StatePlaces();

  // nullptr: exact. For states that are put from now on.
  void codec(const Codec*);
  // `transit`: bytes of memory for states on their way to and from the disk; none: four times the first state.
  void disk(DiskTier, std::optional<Bytes> transit, FileSystem*);
  [[nodiscard]] const Codec* codec() const { return codec_; }
  [[nodiscard]] bool has_disk() const { return disk_tier_.has_value(); }

  // Writing to a disk goes on in the background; whoever comes next tells if it failed.
  void put(Place, Id state, const ArrayView&);
  // `last`: it need not stay there.
  [[nodiscard]] Array get(Place, Id state, bool last);
  void erase(Place, Id state);
  [[nodiscard]] bool contains(Place, Id state) const;
  // These will be wanted from the disk, in this order.
  void prefetch(std::span<const Id> states);
  void clear() noexcept;
  // Puts it and gets it back, in a store of its own.
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
