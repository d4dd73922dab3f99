// Random operations on a store and on a model of it: a table and a few sums, one thing after the other. They agree
// about every result, every value, every byte and every number of the statistics.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "reprise/store/store.h"
#include "store/store_support.h"
#include "support/cases.h"
#include "support/random_trace.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

using testing::Random;
using testing::TemporaryFolder;
using testing::TrimCodec;

// ---- the model ------------------------------------------------------------------------------------------------------

enum class Outcome { stored, not_remembered, refused, does_not_fit };

class Model {
 public:
  struct Entry {
    Description description;
    std::vector<std::byte> decoded;
  };

  explicit Model(const StoreOptions& options)
      : rule_(options.remember),
        evict_(options.evict),
        codec_(options.codec),
        has_disk_(options.disk.has_value()),
        tiers_{{options.memory}, {options.disk ? options.disk->budget : 0}} {}

  StoreStatistics statistics;
  std::map<std::string, Entry> entries;
  bool enabled = true;

  Outcome put(const std::string& key, const ArrayView& array, const PutOptions& options) {
    ++statistics.puts;
    Entry entry;
    entry.description = {.number = next_number_++,
                         .plain_bytes = static_cast<Bytes>(array.bytes()),
                         .cost = options.cost,
                         .codec = "exact",
                         .element = array.element(),
                         .shape = array.shape()};
    entry.decoded.assign(array.data().begin(), array.data().end());
    if (!enabled) {
      ++statistics.not_remembered;
      return Outcome::not_remembered;
    }
    if (!rule_({key, entry.description.number, entry.description.plain_bytes, options.cost})) {
      ++statistics.not_remembered;
      erase(key);
      return Outcome::not_remembered;
    }

    const Codec* const asked = options.codec ? options.codec : codec_ ? codec_ : &codec("exact");
    const Bytes plain = entry.description.plain_bytes;
    if (const auto room = asked->room(array); room && static_cast<Bytes>(*room) <= budget(TierKind::memory)) {
      if (!make_room(TierKind::memory, static_cast<Bytes>(*room), key)) return put_on_disk(key, entry, *asked, true);
      std::vector<std::byte> coded(*room);
      if (const auto bytes = asked->encode(array, coded)) {
        coded.resize(*bytes);
        asked->decode(coded, array.element(), entry.decoded);
        entry.description.codec = asked->name();
        entry.description.bytes = static_cast<Bytes>(*bytes);
        commit(key, entry, *asked);
        return Outcome::stored;
      }
    }
    if (plain <= budget(TierKind::memory) && make_room(TierKind::memory, plain, key)) {
      entry.description.bytes = plain;
      commit(key, entry, *asked);
      return Outcome::stored;
    }
    return put_on_disk(key, entry, *asked, plain <= budget(TierKind::memory));
  }

  // nullptr: not there.
  const Entry* get(const std::string& key) {
    ++statistics.gets;
    const auto found = entries.find(key);
    if (found == entries.end()) {
      ++statistics.misses;
      return nullptr;
    }
    ++statistics.hits;
    const Description& read = found->second.description;
    if (read.tier == TierKind::disk && read.codec != "exact" && read.bytes <= free(TierKind::memory)) {
      raise_peak(TierKind::memory, read.bytes);  // the buffer it comes through
    }
    return &found->second;
  }

  bool erase(const std::string& key) {
    const auto found = entries.find(key);
    if (found == entries.end()) return false;
    hold(found->second.description, -1);
    entries.erase(found);
    return true;
  }

  void clear() {
    while (!entries.empty()) erase(entries.begin()->first);
  }

  void offload(const std::string& key) {
    const auto found = entries.find(key);
    if (!has_disk_ || found == entries.end() || found->second.description.tier == TierKind::disk) return;
    (void)move_to_disk(key);
  }

  // False: no room.
  bool prefetch(const std::string& key) {
    const auto found = entries.find(key);
    if (found == entries.end() || found->second.description.tier == TierKind::memory) return true;
    Description& moved = found->second.description;
    if (moved.bytes > budget(TierKind::memory)) return true;
    if (moved.bytes > free(TierKind::memory)) return false;
    hold(moved, -1);
    moved.tier = TierKind::memory;
    hold(moved, +1);
    ++statistics.moves_to_memory;
    return true;
  }

  void reset_statistics() {
    statistics = {};
    for (Sums& tier : tiers_) tier.peak = tier.used;
  }

  [[nodiscard]] StoreStatistics all_statistics() const {
    StoreStatistics all = statistics;
    for (const auto& [key, entry] : entries)
      ++(entry.description.tier == TierKind::memory ? all.in_memory : all.on_disk);
    all.bytes = tiers_[0].used;
    all.peak_bytes = tiers_[0].peak;
    all.disk_bytes = tiers_[1].used;
    all.peak_disk_bytes = tiers_[1].peak;
    return all;
  }

 private:
  struct Sums {
    Bytes budget;
    Bytes used = 0;
    Bytes peak = 0;
  };
  [[nodiscard]] Sums& sums(TierKind tier) { return tiers_[static_cast<int>(tier)]; }
  [[nodiscard]] Bytes budget(TierKind tier) { return sums(tier).budget; }
  [[nodiscard]] Bytes free(TierKind tier) { return sums(tier).budget - sums(tier).used; }
  void raise_peak(TierKind tier, Bytes more) { sums(tier).peak = std::max(sums(tier).peak, sums(tier).used + more); }

  static Bytes held(const Description& value) { return value.bytes + (value.tier == TierKind::disk ? 32 : 0); }
  void hold(const Description& value, int sign) {
    sums(value.tier).used += sign * held(value);
    raise_peak(value.tier, 0);
  }

  // True: there is room now, and the peak says that it has been taken.
  bool make_room(TierKind tier, Bytes bytes, const std::string& key, bool replacing = true) {
    while (bytes > free(tier)) {
      const auto old = entries.find(key);
      if (replacing && old != entries.end() && old->second.description.tier == tier &&
          bytes <= free(tier) + held(old->second.description)) {
        erase(key);
        break;
      }
      if (evict_ == Evict::nothing) return false;
      const std::string* const victim = next_victim(tier, key);
      if (!victim) return false;
      const std::string name = *victim;
      if (tier == TierKind::disk) {
        ++statistics.dropped;
        erase(name);
      } else if (!has_disk_ || !move_to_disk(name)) {
        ++statistics.evictions;
        ++statistics.dropped;
        erase(name);
      }
    }
    raise_peak(tier, bytes);
    return true;
  }

  const std::string* next_victim(TierKind tier, const std::string& except) {
    const auto score = [&](const Description& value) {
      if (evict_ == Evict::oldest) return 0.0;
      return value.bytes == 0 ? INFINITY : value.cost / static_cast<double>(value.bytes);
    };
    const std::string* victim = nullptr;
    const Description* least = nullptr;
    for (const auto& [key, entry] : entries) {
      const Description& value = entry.description;
      if (value.tier != tier || key == except) continue;
      if (!least || std::pair(score(value), value.number) < std::pair(score(*least), least->number)) {
        victim = &key;
        least = &value;
      }
    }
    return victim;
  }

  // False: it does not fit there, whatever is dropped.
  bool move_to_disk(const std::string& key) {
    Description& value = entries.at(key).description;
    if (value.bytes + 32 > budget(TierKind::disk)) return false;
    if (!make_room(TierKind::disk, value.bytes + 32, key, false)) return false;
    Description moved = value;
    moved.tier = TierKind::disk;
    hold(moved, +1);
    hold(value, -1);
    value = moved;
    ++statistics.evictions;
    ++statistics.moves_to_disk;
    return true;
  }

  Outcome put_on_disk(const std::string& key, Entry& entry, const Codec& asked, bool fits_memory) {
    entry.description.bytes = entry.description.plain_bytes;
    entry.description.tier = TierKind::disk;
    if (has_disk_ && held(entry.description) <= budget(TierKind::disk)) {
      if (make_room(TierKind::disk, held(entry.description), key)) {
        commit(key, entry, asked);
        return Outcome::stored;
      }
      fits_memory = true;
    }
    ++statistics.refused;
    return fits_memory ? Outcome::refused : Outcome::does_not_fit;
  }

  void commit(const std::string& key, const Entry& entry, const Codec& asked) {
    // The new one is complete before the old one goes.
    hold(entry.description, +1);
    erase(key);
    entries[key] = entry;
    ++statistics.stored_ever;
    statistics.before_coding += entry.description.plain_bytes;
    statistics.after_coding += entry.description.bytes;
    if (entry.description.codec != asked.name()) ++statistics.kept_exactly;
  }

  Remember rule_;
  Evict evict_;
  const Codec* codec_;
  bool has_disk_;
  Sums tiers_[2];
  std::uint64_t next_number_ = 0;
};

// ---- comparing ------------------------------------------------------------------------------------------------------

void expect_equal(const StoreStatistics& store, const StoreStatistics& model) {
  EXPECT_EQ(store.stored_ever, model.stored_ever);
  EXPECT_EQ(store.in_memory, model.in_memory);
  EXPECT_EQ(store.on_disk, model.on_disk);
  EXPECT_EQ(store.puts, model.puts);
  EXPECT_EQ(store.gets, model.gets);
  EXPECT_EQ(store.hits, model.hits);
  EXPECT_EQ(store.misses, model.misses);
  EXPECT_EQ(store.evictions, model.evictions);
  EXPECT_EQ(store.dropped, model.dropped);
  EXPECT_EQ(store.moves_to_disk, model.moves_to_disk);
  EXPECT_EQ(store.moves_to_memory, model.moves_to_memory);
  EXPECT_EQ(store.not_remembered, model.not_remembered);
  EXPECT_EQ(store.refused, model.refused);
  EXPECT_EQ(store.kept_exactly, model.kept_exactly);
  EXPECT_EQ(store.bytes, model.bytes);
  EXPECT_EQ(store.peak_bytes, model.peak_bytes);
  EXPECT_EQ(store.disk_bytes, model.disk_bytes);
  EXPECT_EQ(store.peak_disk_bytes, model.peak_disk_bytes);
  EXPECT_EQ(store.before_coding, model.before_coding);
  EXPECT_EQ(store.after_coding, model.after_coding);
  EXPECT_EQ(store, model);
}

void expect_equal(const Array& array, const Model::Entry& entry) {
  EXPECT_EQ(array.element(), entry.description.element);
  EXPECT_EQ(array.shape(), entry.description.shape);
  EXPECT_TRUE(std::ranges::equal(array.data(), entry.decoded));
}

void expect_equal(const Description& store, const Description& model) {
  EXPECT_EQ(store.number, model.number);
  EXPECT_EQ(store.bytes, model.bytes);
  EXPECT_EQ(store.plain_bytes, model.plain_bytes);
  EXPECT_EQ(store.cost, model.cost);
  EXPECT_EQ(store.tier, model.tier);
  EXPECT_EQ(store.codec, model.codec);
  EXPECT_EQ(store.element, model.element);
  EXPECT_EQ(store.shape, model.shape);
}

void expect_equal(const Store& store, const Model& model, const std::vector<std::string>& keys) {
  expect_equal(store.statistics(), model.all_statistics());
  EXPECT_EQ(store.size(), model.entries.size());
  for (const std::string& key : keys) {
    const auto found = model.entries.find(key);
    ASSERT_EQ(store.contains(key), found != model.entries.end()) << key;
    if (found != model.entries.end()) expect_equal(store.describe(key), found->second.description);
  }
}

void expect_files(const std::filesystem::path& folder, const StoreStatistics& statistics) {
  std::uint64_t files = 0;
  Bytes bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".value") continue;
    ++files;
    bytes += static_cast<Bytes>(entry.file_size());
  }
  EXPECT_EQ(files, statistics.on_disk);
  EXPECT_EQ(bytes, statistics.disk_bytes);
}

// ---- random operations ----------------------------------------------------------------------------------------------

struct World {
  Evict evict;
  bool disk;
  const Codec* codec;
};

// Random numbers, zeros at the end, and here and there something a codec chokes on.
Array random_array(Random& random) {
  const Element elements[] = {Element::float32, Element::float32, Element::float64, Element::int32, Element::uint8};
  const Element element = elements[random.below(5)];
  const auto count = static_cast<std::int64_t>(random.chance(0.1) ? random.below(60) : random.below(14));
  Array array(element, count % 2 == 0 && random.chance(0.5) ? Shape{2, count / 2} : Shape{count});
  std::ranges::fill(array.data(), std::byte{0});
  for (std::byte& byte : array.data().first(random.below(array.bytes() + 1))) {
    byte = random.chance(0.2) ? std::byte{0xEE} : static_cast<std::byte>(random.below(256));
  }
  return array;
}

void run(const World& world, std::uint64_t seed, int operations) {
  Random random(seed);
  const TemporaryFolder folder;
  const TrimCodec odd(3, 7), tight(1);
  const std::vector<const Codec*> codecs = {nullptr,        nullptr,        nullptr,        &odd,
                                            &tight,         &codec("half"), &codec("bits"), &codec("small"),
                                            &codec("int8"), &codec("exact")};
  StoreOptions options;
  options.memory = static_cast<Bytes>(random.chance(0.1) ? 0 : random.below(400));
  options.remember = random.chance(0.7)   ? remember::all()
                     : random.chance(0.5) ? remember::every(2)
                                          : remember::costly(3);
  options.evict = world.evict;
  options.codec = world.codec;
  if (world.disk) {
    options.disk = DiskTier{.folder = folder.path()};
    if (random.chance(0.8))
      options.disk->budget = static_cast<Bytes>(random.chance(0.1) ? random.below(40) : random.below(800));
  }
  Model model(options);
  Store store(options);

  std::vector<std::string> keys;
  for (std::uint64_t i = 0, end = 3 + random.below(10); i < end; ++i) keys.push_back(std::to_string(i));
  const auto any_key = [&] { return keys[random.below(keys.size())]; };

  for (int operation = 0; operation < operations && !::testing::Test::HasFailure(); ++operation) {
    const std::uint64_t what = random.below(100);
    const std::string key = any_key();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", operation " + std::to_string(operation) + ", what " +
                 std::to_string(what) + ", key " + key);
    if (what < 50) {
      const Array array = random_array(random);
      const PutOptions put = {.cost = static_cast<double>(random.below(10)),
                              .codec = codecs[random.below(codecs.size())]};
      Outcome outcome = Outcome::does_not_fit;
      try {
        outcome = static_cast<Outcome>(store.put(key, array, put));
      } catch (const DoesNotFit&) {
      }
      EXPECT_EQ(outcome, model.put(key, array, put));
    } else if (what < 75) {
      const bool take = what >= 65;
      const Model::Entry* const entry = model.get(key);
      try {
        const Array array = take ? store.take(key) : store.get(key);
        ASSERT_TRUE(entry);
        expect_equal(array, *entry);
      } catch (const NotStored&) {
        EXPECT_FALSE(entry);
      }
      if (take) model.erase(key);
    } else if (what < 80) {
      EXPECT_EQ(store.erase(key), model.erase(key));
    } else if (what < 88) {
      const std::vector<Key> several = {key, any_key(), any_key()};
      store.offload(several);
      store.wait();
      for (const Key& offloaded : several) model.offload(offloaded.text);
    } else if (what < 96) {
      const std::vector<Key> several = {key, any_key(), any_key()};
      store.prefetch(several);
      store.wait();
      std::vector<Key> waiting;
      for (const Key& fetched : several) {
        if (!waiting.empty() || !model.prefetch(fetched.text)) waiting.push_back(fetched);
      }
      // So that they do not happen in the middle of the next operation.
      std::erase_if(waiting, [&](const Key& one) { return testing::in_memory(store, one); });
      store.offload(waiting);
      store.wait();
    } else if (what < 97) {
      store.clear();
      model.clear();
    } else if (what < 98) {
      store.reset_statistics();
      model.reset_statistics();
    } else {
      model.enabled = random.chance(0.7);
      store.enabled(model.enabled);
    }
    expect_equal(store, model, keys);
    if (world.disk) expect_files(folder.path(), store.statistics());
  }
  for (const std::string& key : keys) {
    if (const auto found = model.entries.find(key); found != model.entries.end()) {
      expect_equal(store.get(key), found->second);
    }
  }
}

class StoreModel : public ::testing::TestWithParam<std::tuple<Evict, bool>> {};

TEST_P(StoreModel, AgreesWithTheStoreAboutEverythingAfterEveryOperation) {
  const auto [evict, disk] = GetParam();
  const TrimCodec odd(2, 3);
  for (std::uint64_t seed = 0; seed < testing::cases(60) && !HasFailure(); ++seed) {
    const Codec* const codecs[] = {nullptr, &odd, &codec("half"), &codec("zstd")};
    run({evict, disk, codecs[seed % 4]}, seed * 6 + static_cast<std::uint64_t>(evict) * 2 + disk, 120);
  }
}

INSTANTIATE_TEST_SUITE_P(AllRules, StoreModel,
                         ::testing::Combine(::testing::Values(Evict::oldest, Evict::cheapest, Evict::nothing),
                                            ::testing::Bool()),
                         [](const auto& setting) {
                           return std::string(name(std::get<0>(setting.param))) +
                                  (std::get<1>(setting.param) ? "WithDiskThread" : "InMemory");
                         });

}  // namespace
}  // namespace reprise
