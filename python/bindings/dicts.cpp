#include "dicts.h"

#include <pybind11/stl.h>

#include "reprise/trace/error.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

// Reads the numbers of a dict. What is left in it in the end is a mistake.
class Reader {
 public:
  Reader(const py::dict& dict, const char* of) : left_(dict.attr("copy")()), of_(of) {}

  template <class T>
  void read(const char* name, T& number) {
    if (!left_.contains(name)) return;
    try {
      number = left_[name].cast<T>();
    } catch (const py::cast_error&) {
      throw py::type_error(std::string("sizes have '") + name + "' of " + of_ + ", which is no " +
                           (std::is_same_v<T, double> ? "number" : "whole number of bytes"));
    }
    left_.attr("pop")(name);
  }
  py::object take(const char* name) {
    if (!left_.contains(name)) throw py::type_error(std::string("sizes need '") + name + "'");
    return left_.attr("pop")(name);
  }
  void end() const {
    for (const auto& [name, value] : left_) {
      throw py::type_error("sizes have '" + py::str(name).cast<std::string>() + "' of " + of_ + ", which nobody knows");
    }
  }

 private:
  py::dict left_;
  const char* const of_;
};

}  // namespace

ChainForm form_of(const py::dict& dict) {
  ChainForm form;
  Reader all(dict, "the chain");
  all.read("input", form.input);
  all.read("gradient", form.gradient);
  all.read("other", form.other);
  const py::object layers = all.take("layers");
  if (!py::isinstance<py::sequence>(layers)) throw py::type_error("sizes have 'layers' that is no list");
  for (const py::handle each : layers) {
    if (!py::isinstance<py::dict>(each)) throw py::type_error("sizes have a layer that is no dict");
    Reader one(py::reinterpret_borrow<py::dict>(each), "a layer");
    ChainLayerForm layer;
    one.read("state", layer.state);
    one.read("tape", layer.tape);
    one.read("gradient", layer.gradient);
    one.read("workspace", layer.workspace);
    one.read("forward_cost", layer.forward_cost);
    one.read("backward_cost", layer.backward_cost);
    one.end();
    form.layers.push_back(layer);
  }
  all.end();
  return form;
}

py::dict dict_of(const ChainForm& form) {
  py::list layers;
  for (const ChainLayerForm& layer : form.layers) {
    py::dict one;
    one["state"] = layer.state;
    one["tape"] = layer.tape;
    one["gradient"] = layer.gradient;
    one["workspace"] = layer.workspace;
    one["forward_cost"] = layer.forward_cost;
    one["backward_cost"] = layer.backward_cost;
    layers.append(one);
  }
  py::dict all;
  all["input"] = form.input;
  all["gradient"] = form.gradient;
  all["other"] = form.other;
  all["layers"] = layers;
  return all;
}

py::dict dict_of(const ChainStatistics& statistics) {
  py::dict all;
  all["stored"] = statistics.stored;
  all["peak_stored"] = statistics.peak_stored;
  all["not_stored"] = statistics.not_stored;
  all["disk"] = statistics.disk;
  all["peak_disk"] = statistics.peak_disk;
  all["remembered"] = statistics.remembered;
  all["peak_remembered"] = statistics.peak_remembered;
  all["forward_calls"] = statistics.forward_calls;
  all["replays"] = statistics.replays;
  all["backward_calls"] = statistics.backward_calls;
  all["passes"] = statistics.passes;
  all["spare"] = statistics.spare;
  return all;
}

py::dict dict_of(const StoreStatistics& statistics) {
  py::dict all;
  all["stored_ever"] = statistics.stored_ever;
  all["in_memory"] = statistics.in_memory;
  all["on_disk"] = statistics.on_disk;
  all["puts"] = statistics.puts;
  all["gets"] = statistics.gets;
  all["hits"] = statistics.hits;
  all["misses"] = statistics.misses;
  all["evictions"] = statistics.evictions;
  all["dropped"] = statistics.dropped;
  all["moves_to_disk"] = statistics.moves_to_disk;
  all["moves_to_memory"] = statistics.moves_to_memory;
  all["not_remembered"] = statistics.not_remembered;
  all["refused"] = statistics.refused;
  all["kept_exactly"] = statistics.kept_exactly;
  all["bytes"] = statistics.bytes;
  all["peak_bytes"] = statistics.peak_bytes;
  all["disk_bytes"] = statistics.disk_bytes;
  all["peak_disk_bytes"] = statistics.peak_disk_bytes;
  all["before_coding"] = statistics.before_coding;
  all["after_coding"] = statistics.after_coding;
  return all;
}

py::dict dict_of(const Description& description) {
  py::dict all;
  all["number"] = description.number;
  all["bytes"] = description.bytes;
  all["plain_bytes"] = description.plain_bytes;
  all["cost"] = description.cost;
  all["tier"] = name(description.tier);
  all["codec"] = description.codec;
  all["dtype"] = name(description.element);
  all["shape"] = py::tuple(py::cast(description.shape));
  return all;
}

Verify verify_of(const std::string& room, const std::string& name) {
  for (const Verify when : {Verify::never, Verify::first_time, Verify::always}) {
    if (name == name_of(when)) return when;
  }
  throw BadOption("[" + room + "] option verify is '" + name + "': it must be never, first_time or always");
}

std::string name_of(Verify when) {
  switch (when) {
    case Verify::never: return "never";
    case Verify::first_time: return "first_time";
    case Verify::always: return "always";
  }
  return "?";
}

}  // namespace reprise::python
