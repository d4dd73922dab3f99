#include "trace/json_tiers.h"

#include <fmt/format.h>

#include <array>

namespace reprise::internal {
namespace {

constexpr const char* expected_entry =
    "expected [value, bytes, put_cost, get_cost] or [value, bytes, put_cost, get_cost, put_time, get_time]";

TierEntry read_entry(JsonReader& reader) {
  TierEntry entry;
  std::size_t items = 0;
  reader.begin_list();
  for (; reader.next_item(); ++items) {
    switch (items) {
      case 0: entry.value = reader.id(); break;
      case 1: entry.bytes = reader.integer(); break;
      case 2: entry.put_cost = reader.number(); break;
      case 3: entry.get_cost = reader.number(); break;
      case 4: entry.put_time = reader.number(); break;
      case 5: entry.get_time = reader.number(); break;
      default: reader.fail(fmt::format("one item too many: {}", expected_entry));
    }
  }
  if (items != 4 && items != 6) reader.fail(expected_entry);
  return entry;
}

Tier read_tier(JsonReader& reader) {
  static constexpr std::array<std::string_view, 5> keys = {"name", "capacity_bytes", "in_budget", "values", "duplex"};
  Tier tier;
  const auto seen = read_record(reader, keys, [&](std::size_t key) {
    switch (key) {
      case 0: tier.name = reader.string(); break;
      case 1: tier.capacity = reader.integer(); break;
      case 2: tier.in_budget = reader.boolean(); break;
      case 3:
        reader.begin_list();
        while (reader.next_item()) tier.entries.push_back(read_entry(reader));
        break;
      case 4: tier.duplex = reader.boolean(); break;
    }
  });
  if (!(seen >> 2 & 1)) reader.fail("'in_budget' is missing");
  if (!(seen >> 3 & 1)) reader.fail("'values' is missing");
  return tier;
}

}  // namespace

std::vector<Tier> read_tiers(JsonReader& reader) {
  std::vector<Tier> tiers;
  reader.begin_list();
  while (reader.next_item()) tiers.push_back(read_tier(reader));
  return tiers;
}

void write_tiers(JsonWriter& writer, const std::vector<Tier>& tiers) {
  writer.lines(tiers.size(), [&](std::size_t t) {
    const Tier& tier = tiers[t];
    writer.begin_record().key("name").string(tier.name, "tiers", t);
    if (tier.capacity) writer.key("capacity_bytes").integer(*tier.capacity);
    writer.key("in_budget").raw(tier.in_budget ? "true" : "false");
    if (tier.duplex) writer.key("duplex").raw("true");
    const bool overlaps = tier.overlaps();
    writer.key("values").lines(tier.entries.size(), [&](std::size_t i) {
      const TierEntry& entry = tier.entries[i];
      writer.raw("[").integer(entry.value).raw(",").integer(entry.bytes).raw(",");
      writer.number(entry.put_cost).raw(",").number(entry.get_cost);
      if (overlaps) writer.raw(",").number(entry.put_time).raw(",").number(entry.get_time);
      writer.raw("]");
    });
    writer.end_record();
  });
}

BadInput with_place_in_file(const BadInput& error) {
  std::string place = error.place();
  const auto rename = [&](std::string_view field, std::string_view key) {
    if (const std::size_t at = place.find(field); at != std::string::npos) place.replace(at, field.size(), key);
  };
  if (place == "budget") place = "budget_bytes";
  if (place.starts_with("tiers[")) {
    rename("].entries", "].values");
    rename("].capacity", "].capacity_bytes");
  }
  return {error.file(), place, error.reason()};
}

}  // namespace reprise::internal
