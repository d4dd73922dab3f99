#include <array>

#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "trace/graph_file.h"
#include "trace/json_file.h"
#include "trace/json_reader.h"
#include "trace/json_tiers.h"
#include "trace/json_writer.h"

namespace reprise {
using namespace internal;
namespace {

// ---- reading: the grammar of docs/formats.md, one function for each record ------------------------------------------

Operator read_operator(JsonReader& reader) {
  static constexpr std::array<std::string_view, 8> keys = {"name",      "inputs",     "outputs", "cost",
                                                           "workspace", "replayable", "module",  "event"};
  Operator op;
  read_record(reader, keys, [&](std::size_t key) {
    switch (key) {
      case 0: op.name = reader.string(); break;
      case 1: read_ids(reader, op.inputs); break;
      case 2: read_ids(reader, op.outputs); break;
      case 3: op.cost = reader.number(); break;
      case 4: op.workspace = reader.integer(); break;
      case 5: op.replayable = reader.boolean(); break;
      case 6: op.module = reader.string(); break;
      case 7: op.event = reader.boolean(); break;
    }
  });
  return op;
}

Stretch read_stretch(JsonReader& reader) {
  std::vector<Id> ends;
  read_ids(reader, ends);
  if (ends.size() != 2) reader.fail("expected [first moment, last moment]");
  return {ends[0], ends[1]};
}

Value read_value(JsonReader& reader) {
  static constexpr std::array<std::string_view, 4> keys = {"bytes", "maker", "held", "takes_over"};
  Value value;
  const auto seen = read_record(reader, keys, [&](std::size_t key) {
    switch (key) {
      case 0: value.bytes = reader.integer(); break;
      case 1: value.maker = reader.id(); break;
      case 2: value.held = read_stretch(reader); break;
      case 3: value.takes_over = reader.id(); break;
    }
  });
  if (!(seen & 1)) reader.fail("'bytes' is missing");
  return value;
}

Moment read_moment(JsonReader& reader) {
  static constexpr std::array<std::string_view, 5> keys = {"runs", "other", "name", "needs", "cost"};
  Moment moment;
  read_record(reader, keys, [&](std::size_t key) {
    switch (key) {
      case 0: moment.runs = reader.id(); break;
      case 1: moment.other = reader.integer(); break;
      case 2: moment.name = reader.string(); break;
      case 3: read_ids(reader, moment.needs); break;
      case 4: moment.cost = reader.number(); break;
    }
  });
  return moment;
}

template <typename Record>
void read_list(JsonReader& reader, std::vector<Record>& list, Record (*read)(JsonReader&)) {
  reader.begin_list();
  while (reader.next_item()) list.push_back(read(reader));
}

Trace read_whole_trace(std::string_view json) {
  static constexpr std::array<std::string_view, 7> keys = {"format",  "version", "operators", "values",
                                                           "moments", "name",    "tiers"};
  JsonReader reader(json);
  Trace trace;
  const auto seen = read_record(reader, keys, [&](std::size_t key) {
    switch (key) {
      case 0: reader.skip(); break;  // `kind_of` has read it
      case 1: static_cast<void>(reader.integer()); break;
      case 2: read_list(reader, trace.operators, read_operator); break;
      case 3: read_list(reader, trace.values, read_value); break;
      case 4: read_list(reader, trace.moments, read_moment); break;
      case 5: trace.name = reader.string(); break;
      case 6: trace.tiers = read_tiers(reader); break;
    }
  });
  reader.end();
  for (std::size_t key = 2; key <= 4; ++key) {
    if (!(seen >> key & 1)) throw BadInput("", std::string(keys[key]), "it is missing");
  }
  return trace;
}

// ---- writing --------------------------------------------------------------------------------------------------------

void write_operator(JsonWriter& writer, const Operator& op, std::size_t index) {
  writer.begin_record();
  if (!op.name.empty()) writer.key("name").string(op.name, "operators", index);
  if (!op.inputs.empty()) writer.key("inputs").ids(op.inputs);
  if (!op.outputs.empty()) writer.key("outputs").ids(op.outputs);
  if (op.cost != 0) writer.key("cost").number(op.cost);
  if (op.workspace != 0) writer.key("workspace").integer(op.workspace);
  if (!op.replayable) writer.key("replayable").raw("false");
  if (!op.module.empty()) writer.key("module").string(op.module, "operators", index, "module");
  if (op.event) writer.key("event").raw("true");
  writer.end_record();
}

void write_value(JsonWriter& writer, const Value& value) {
  writer.begin_record().key("bytes").integer(value.bytes);
  if (value.maker) writer.key("maker").integer(*value.maker);
  if (value.held) writer.key("held").ids({value.held->first, value.held->last});
  if (value.takes_over) writer.key("takes_over").integer(*value.takes_over);
  writer.end_record();
}

void write_moment(JsonWriter& writer, const Moment& moment, std::size_t index) {
  writer.begin_record();
  if (moment.runs) writer.key("runs").integer(*moment.runs);
  if (!moment.name.empty()) writer.key("name").string(moment.name, "moments", index);
  if (!moment.needs.empty()) writer.key("needs").ids(moment.needs);
  if (moment.cost != 0) writer.key("cost").number(moment.cost);
  if (moment.other != 0) writer.key("other").integer(moment.other);
  writer.end_record();
}

}  // namespace

Trace parse_trace(std::string_view json) {
  const FileKind kind = kind_of(json);
  if (kind == FileKind::plan) throw BadInput("", "format", "this is a plan, not a trace");
  if (kind == FileKind::graph) return parse_graph(json);
  Trace trace = read_whole_trace(json);
  try {
    check(trace);
  } catch (const BadInput& error) {
    throw with_place_in_file(error);
  }
  return trace;
}

Trace read_trace(const std::filesystem::path& path) {
  return parse_file(path, [](std::string_view json) { return parse_trace(json); });
}

std::string to_json(const Trace& trace) {
  check(trace);
  JsonWriter writer;
  writer.raw("{\"format\":\"reprise-trace\",\"version\":1,\n\"name\":").string(trace.name, "name");
  writer.raw(",\n\"operators\":").lines(trace.operators.size(), [&](std::size_t i) {
    write_operator(writer, trace.operators[i], i);
  });
  writer.raw(",\n\"values\":").lines(trace.values.size(), [&](std::size_t i) { write_value(writer, trace.values[i]); });
  writer.raw(",\n\"moments\":").lines(trace.moments.size(), [&](std::size_t i) {
    write_moment(writer, trace.moments[i], i);
  });
  if (!trace.tiers.empty()) {
    writer.raw(",\n\"tiers\":");
    write_tiers(writer, trace.tiers);
  }
  return writer.raw("}\n").take();
}

void write_trace(const std::filesystem::path& path, const Trace& trace) {
  write_text(path, to_json(trace));
}

}  // namespace reprise
