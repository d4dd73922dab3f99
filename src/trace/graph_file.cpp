#include "trace/graph_file.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "reprise/trace/error.h"
#include "trace/json_reader.h"

namespace reprise::internal {
namespace {

struct Graph {
  std::string name;
  std::optional<std::vector<double>> cost;
  std::optional<std::vector<Bytes>> size;
  std::optional<std::vector<std::pair<Id, Id>>> edges;
  std::optional<std::vector<std::string>> op;  // empty where the file has no name
};

std::pair<Id, Id> read_edge(JsonReader& reader) {
  std::vector<Id> ends;
  read_ids(reader, ends);
  if (ends.size() != 2) reader.fail(fmt::format("expected an edge [from, to], found {} ids", ends.size()));
  return {ends[0], ends[1]};
}

template <typename Item, typename Read>
void read_list(JsonReader& reader, std::optional<std::vector<Item>>& list, Read read) {
  if (list) reader.fail("this key appears twice");
  list.emplace();
  reader.begin_list();
  while (reader.next_item()) list->push_back(read());
}

// Names are for people: a name that is not text is left out, and is no error.
std::string read_name(JsonReader& reader) {
  if (reader.peek() == JsonReader::Kind::string) return reader.string();
  reader.skip();
  return {};
}

Graph read_whole_graph(std::string_view json) {
  JsonReader reader(json);
  Graph graph;
  reader.begin_object();
  while (reader.next_key()) {
    const std::string& key = reader.key();
    if (key == "cost") {
      read_list(reader, graph.cost, [&] { return reader.number(); });
    } else if (key == "size") {
      read_list(reader, graph.size, [&] { return reader.whole(); });
    } else if (key == "edges") {
      read_list(reader, graph.edges, [&] { return read_edge(reader); });
    } else if (key == "op" && reader.peek() == JsonReader::Kind::list) {
      read_list(reader, graph.op, [&] { return read_name(reader); });
    } else if (key == "name") {
      graph.name = read_name(reader);
    } else {
      reader.skip();
    }
  }
  reader.end();
  return graph;
}

void check_graph(const Graph& graph) {
  if (!graph.cost) throw BadInput("", "cost", "it is missing");
  if (!graph.size) throw BadInput("", "size", "it is missing");
  if (!graph.edges) throw BadInput("", "edges", "it is missing");
  const std::size_t nodes = graph.cost->size();
  const auto check_length = [&](const char* key, std::size_t length) {
    if (length != nodes) throw BadInput("", key, fmt::format("it has {} items, but cost has {}", length, nodes));
  };
  check_length("size", graph.size->size());
  if (graph.op) check_length("op", graph.op->size());
  for (std::size_t i = 0; i < graph.edges->size(); ++i) {
    const auto [from, to] = (*graph.edges)[i];
    const auto place = [&] { return fmt::format("edges[{}]", i); };
    for (const Id end : {from, to}) {
      if (static_cast<std::size_t>(end) >= nodes) {
        throw BadInput("", place(), fmt::format("there is no node {}, the graph has {}", end, nodes));
      }
    }
    if (from >= to) {
      throw BadInput(
          "", place(),
          fmt::format("from {} to {}: the ids are not topological, this is a cycle or a wrong order", from, to));
    }
  }
}

Trace to_trace(Graph graph) {
  const Id nodes = static_cast<Id>(graph.cost->size());
  Trace trace;
  trace.name = std::move(graph.name);
  trace.operators.resize(nodes);
  trace.values.resize(nodes);
  trace.moments.resize(nodes);
  for (Id node = 0; node < nodes; ++node) {
    Operator& op = trace.operators[node];
    if (graph.op) op.name = std::move((*graph.op)[node]);
    if (op.name.empty()) op.name = fmt::format("node {}", node);
    op.cost = (*graph.cost)[node];
    op.outputs = {node};
    trace.values[node].bytes = (*graph.size)[node];
    trace.values[node].maker = node;
    trace.moments[node].runs = node;
  }
  for (const auto& [from, to] : *graph.edges) trace.operators[to].inputs.push_back(from);
  // An edge that appears twice counts once; the order of the file stays.
  std::vector<Id> used_by(nodes, -1);
  for (Id node = 0; node < nodes; ++node) {
    std::erase_if(trace.operators[node].inputs, [&](Id from) { return std::exchange(used_by[from], node) == node; });
  }
  return trace;
}

// Returns the error in terms of the graph file: operators[3].cost is cost[3].
std::string place_in_file(const std::string& place) {
  const std::size_t open = place.find('['), close = place.find(']');
  if (open == std::string::npos || close == std::string::npos) return place;
  const std::string index = place.substr(open, close - open + 1);
  if (place.ends_with(".cost")) return "cost" + index;
  if (place.ends_with(".bytes")) return "size" + index;
  return place;
}

}  // namespace

Trace parse_graph(std::string_view json) {
  Graph graph = read_whole_graph(json);
  check_graph(graph);
  Trace trace = to_trace(std::move(graph));
  try {
    check(trace);
  } catch (const BadInput& error) {
    throw BadInput("", place_in_file(error.place()), error.reason());
  }
  return trace;
}

}  // namespace reprise::internal
