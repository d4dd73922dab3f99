#include <fmt/format.h>

#include <array>

#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "trace/check.h"
#include "trace/json_file.h"
#include "trace/json_reader.h"
#include "trace/json_tiers.h"
#include "trace/json_writer.h"
#include "trace/printable.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::array kinds = {Action::Kind::run, Action::Kind::replay, Action::Kind::drop, Action::Kind::put,
                              Action::Kind::get};

bool names_tier(Action::Kind kind) {
  return kind == Action::Kind::put || kind == Action::Kind::get;
}

Action::Kind read_kind(JsonReader& reader) {
  const std::string word = reader.string();
  for (const Action::Kind kind : kinds) {
    if (word == name(kind)) return kind;
  }
  reader.fail(fmt::format("'{}' is none of run, replay, drop, put and get", printable(word)));
}

Action read_action(JsonReader& reader) {
  Action action;
  std::size_t items = 0;
  reader.begin_list();
  for (; reader.next_item(); ++items) {
    switch (items) {
      case 0: action.kind = read_kind(reader); break;
      case 1: action.target = reader.id(); break;
      case 2:
        if (!names_tier(action.kind))
          reader.fail(fmt::format("only put and get name a tier, not {}", name(action.kind)));
        action.tier = reader.id();
        break;
      default: reader.fail("one item too many");
    }
  }
  if (items == 0) reader.fail("expected an action, such as [\"run\",0]");
  if (items == 1) reader.fail(fmt::format("the target of {} is missing", name(action.kind)));
  if (items == 2 && names_tier(action.kind)) reader.fail(fmt::format("the tier of {} is missing", name(action.kind)));
  return action;
}

Plan read_whole_plan(std::string_view json) {
  static constexpr std::array<std::string_view, 5> keys = {"format", "version", "budget_bytes", "tiers", "actions"};
  JsonReader reader(json);
  Plan plan;
  const auto seen = read_record(reader, keys, [&](std::size_t key) {
    switch (key) {
      case 0: reader.skip(); break;  // `kind_of` has read it
      case 1: static_cast<void>(reader.integer()); break;
      case 2: plan.budget = reader.integer(); break;
      case 3: plan.tiers = read_tiers(reader); break;
      case 4:
        reader.begin_list();
        while (reader.next_item()) plan.actions.push_back(read_action(reader));
        break;
    }
  });
  reader.end();
  for (const std::size_t key : {2, 4}) {
    if (!(seen >> key & 1)) throw BadInput("", std::string(keys[key]), "it is missing");
  }
  return plan;
}

}  // namespace

Plan parse_plan(std::string_view json) {
  const FileKind kind = kind_of(json);
  if (kind == FileKind::trace) throw BadInput("", "format", "this is a trace, not a plan");
  if (kind == FileKind::graph) throw BadInput("", "", "this is a graph, not a plan");
  Plan plan = read_whole_plan(json);
  try {
    check(plan);
  } catch (const BadInput& error) {
    throw with_place_in_file(error);
  }
  return plan;
}

Plan read_plan(const std::filesystem::path& path) {
  return parse_file(path, [](std::string_view json) { return parse_plan(json); });
}

std::string to_json(const Plan& plan) {
  check(plan);
  JsonWriter writer;
  writer.raw("{\"format\":\"reprise-plan\",\"version\":1,\"budget_bytes\":").integer(plan.budget);
  writer.raw(",\n\"tiers\":");
  write_tiers(writer, plan.tiers);
  writer.raw(",\n\"actions\":").lines(plan.actions.size(), [&](std::size_t i) {
    const Action& action = plan.actions[i];
    writer.raw("[\"").raw(name(action.kind)).raw("\",").integer(action.target);
    if (names_tier(action.kind)) writer.raw(",").integer(action.tier);
    writer.raw("]");
  });
  return writer.raw("}\n").take();
}

void write_plan(const std::filesystem::path& path, const Plan& plan) {
  write_text(path, to_json(plan));
}

}  // namespace reprise
