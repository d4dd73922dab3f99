#include "compare_results.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "reprise/trace/error.h"

namespace reprise::benchmarks {

using Json = nlohmann::json;

// Where nlohmann's functions look for them.
static void to_json(Json& json, const Measured& m) {
  json = {{"ratios", m.ratios},
          {"peak", m.peak},
          {"gradient_error", m.gradient_error ? Json(*m.gradient_error) : Json(nullptr)},
          {"buffers_equal", m.buffers_equal},
          {"failure", m.failure}};
}

static void from_json(const Json& json, Measured& m) {
  json.at("ratios").get_to(m.ratios);
  json.at("peak").get_to(m.peak);
  if (!json.at("gradient_error").is_null()) m.gradient_error = json.at("gradient_error").get<double>();
  json.at("buffers_equal").get_to(m.buffers_equal);
  json.at("failure").get_to(m.failure);
}

static void to_json(Json& json, const RivalResult& r) {
  json = {{"engine", name(r.rival.engine)},
          {"way", r.rival.way},
          {"label", r.rival.label},
          {"mark", r.rival.mark},
          {"measured", r.measured}};
}

static void from_json(const Json& json, RivalResult& r) {
  r.rival.engine = json.at("engine") == name(Engine::cpp) ? Engine::cpp : Engine::python;
  json.at("way").get_to(r.rival.way);
  json.at("label").get_to(r.rival.label);
  json.at("mark").get_to(r.rival.mark);
  json.at("measured").get_to(r.measured);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReprisePoint, budget, measured)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlainResult, peak, seconds, again)

static void to_json(Json& json, const ModelResult& m) {
  json = {{"model", m.model},
          {"cpp", m.cpp},
          {"python", m.python ? Json(*m.python) : Json(nullptr)},
          {"rivals", m.rivals},
          {"reprise", m.reprise}};
}

static void from_json(const Json& json, ModelResult& m) {
  json.at("model").get_to(m.model);
  json.at("cpp").get_to(m.cpp);
  if (!json.at("python").is_null()) m.python = json.at("python").get<PlainResult>();
  json.at("rivals").get_to(m.rivals);
  json.at("reprise").get_to(m.reprise);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Results, date, options, processor, cores, load, libtorch, python_torch, no_python,
                                   repetitions, quick, asked, models)

void write_results(const std::filesystem::path& path, const Results& results) {
  std::ofstream file(path);
  file << Json(results).dump(1) << '\n';
  if (!file.flush()) throw Error("[bench compare] cannot write " + path.string());
}

Results read_results(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw Error("[bench compare] cannot read " + path.string());
  try {
    return Json::parse(file).get<Results>();
  } catch (const Json::exception& error) {
    throw Error("[bench compare] " + path.string() + " has no measurements of --keep: " + error.what());
  }
}

}  // namespace reprise::benchmarks
