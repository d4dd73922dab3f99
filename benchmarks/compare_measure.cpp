#include <algorithm>
#include <iostream>
#include <limits>
#include <list>
#include <sstream>

#include "bench_compare.h"
#include "compare_python.h"
#include "reprise/torch/errors.h"
#include "reprise/trace/error.h"
#include "training_sides.h"

namespace reprise::benchmarks {
namespace {

// "every 2", "first 4" or "levels" as regions.
Regions regions_of(const std::string& way) {
  std::istringstream words(way);
  std::string word;
  std::int64_t number = 1;
  words >> word >> number;
  if (word == "every") return {.every = number};
  if (word == "first") return {.every = 1, .blocks = number};
  if (word == "levels") return {.every = 1};
  throw BadOption("[bench compare] C++ does not know the way '" + way + "'");
}

struct MeasuredRival {
  Rival rival;
  Measured measured;
};

struct ReprisePoint {
  Bytes budget = 0;  // above the level
  Measured measured;
};

void add_measured(Json& json, const Measured& m) {
  json.update({{"ratios", m.ratios},
               {"peak", m.steps.peak},
               {"gradient_error", m.steps.gradient_error ? Json(*m.steps.gradient_error) : Json(nullptr)},
               {"buffers_equal", m.steps.buffers_equal},
               {"failure", m.failure}});
}

Json json_of(const MeasuredRival& r) {
  Json json{{"engine", r.rival.python ? "Python" : "C++"},
            {"way", r.rival.way},
            {"label", r.rival.label},
            {"mark", r.rival.mark}};
  add_measured(json, r.measured);
  return json;
}

Json json_of(const ReprisePoint& point) {
  Json json{{"budget", point.budget}};
  add_measured(json, point.measured);
  return json;
}

Json json_of(const Plain& plain) {
  return {{"peak", plain.peak}, {"seconds", plain.seconds}, {"again", plain.again.ratios}};
}

class Comparison {
 public:
  Comparison(const ComparedModel& model, const CompareSettings& settings, PythonPeers* python)
      : model_(model), settings_(settings), python_(python), sides_(model.name, "none") {
    for (const Rival& rival : model.rivals) rivals_.push_back({rival, {}});
    if (python_ != nullptr) python_->use_model(model.name);
  }

  Json run() {
    for (MeasuredRival& rival : rivals_) prepare(rival);
    prepare_plain();
    prepare_reprise();
    repeat();
    Json json{{"model", model_.name},       {"title", model_.title},
              {"cpp", json_of(cpp_plain_)}, {"python", python_ == nullptr ? Json(nullptr) : json_of(python_plain_)},
              {"rivals", Json::array()},    {"reprise", Json::array()}};
    for (const MeasuredRival& rival : rivals_) json["rivals"].push_back(json_of(rival));
    for (const ReprisePoint& point : points_) json["reprise"].push_back(json_of(point));
    return json;
  }

 private:
  // Two sides stand between two plain steps of the same engine.
  static constexpr std::size_t between_plain = 2;

  void repeat() {
    Round cpp([&] { return sides_.plain(); }, between_plain, cpp_plain_);
    Round python([&] { return python_->step("plain"); }, between_plain, python_plain_);
    cpp.add_plain_again();
    python.add_plain_again();
    for (MeasuredRival& rival : rivals_) {
      (rival.rival.python ? python : cpp).add(unless_failed(step_of(rival.rival), rival.measured), rival.measured);
    }
    auto session = sessions_.begin();
    for (ReprisePoint& point : points_) {
      if (!point.measured.failure.empty()) continue;
      const auto step = [this, &session = *session++] { return sides_.reprise(session); };
      cpp.add(unless_failed(step, point.measured), point.measured);
    }
    for (int i = 0; i < settings_.repetitions; ++i) {
      std::cerr << model_.name << ": repetition " << i + 1 << " of " << settings_.repetitions << '\n';
      const bool backwards = i % 2 == 1;
      if (python_ != nullptr && backwards) python.run(backwards);
      cpp.run(backwards);
      if (python_ != nullptr && !backwards) python.run(backwards);
    }
  }

  std::function<Sample()> step_of(const Rival& rival) {
    if (rival.python) return [this, way = rival.way] { return python_->step(way); };
    return [this, regions = regions_of(rival.way)] { return sides_.rerun(regions); };
  }

  // The first failure of a side is its last step, and what it measured before does not count.
  static TakeSample unless_failed(std::function<Sample()> step, Measured& measured) {
    return [step = std::move(step), &measured]() -> std::optional<Sample> {
      if (!measured.failure.empty()) return std::nullopt;
      try {
        return step();
      } catch (const std::exception& error) {
        measured.failure = error.what();
        measured.ratios.clear();
        std::cerr << "a side failed: " << error.what() << '\n';
        return std::nullopt;
      }
    };
  }

  // What is done once is done here; the peak is known afterwards.
  void prepare(MeasuredRival& rival) {
    try {
      if (rival.rival.python && python_ == nullptr) throw PeerError("no Python with torch");
      if (rival.rival.python) python_->prepare(rival.rival.way);
      rival.measured.steps.add(step_of(rival.rival)());
      std::cerr << rival.rival.label << ": peak " << rival.measured.steps.peak << '\n';
    } catch (const std::exception& error) {
      rival.measured.failure = error.what();
      std::cerr << rival.rival.label << " is not measured: " << error.what() << '\n';
    }
  }

  void prepare_plain() {
    cpp_plain_.peak = sides_.plain_peak();
    if (python_ == nullptr) return;
    python_->prepare("plain");
    python_plain_.peak = python_->step("plain").peak;
  }

  // One session at the peak of every rival, and some between and below them.
  void prepare_reprise() {
    constexpr double margin = 0.001;  // plain's peak, which shares are of, may still grow by a little
    std::vector<double> shares;
    for (const auto& [rival, measured] : rivals_) {
      const Bytes plain = (rival.python ? python_plain_ : cpp_plain_).peak;
      const double share = static_cast<double>(measured.steps.peak) / static_cast<double>(plain);
      if (measured.failure.empty()) shares.push_back(share - margin);
    }
    for (const double share : shares_to_measure(std::move(shares), settings_.quick)) {
      ReprisePoint& point = points_.emplace_back();
      point.budget = static_cast<Bytes>(share * static_cast<double>(cpp_plain_.peak));
      try {
        sessions_.push_back(settled_session(point.budget));
        std::cerr << "Reprise at " << share << " of plain is ready\n";
      } catch (const BudgetError& error) {
        point.measured.failure = error.what();
        std::cerr << "Reprise cannot keep " << share << " of plain: " << error.what() << '\n';
        return;  // nothing below it is kept either
      }
    }
  }

  // It first sees the model under the plain peak, because plans reach lower than a first step without one.
  Session settled_session(Bytes budget) {
    SessionOptions options;
    options.planning_time = settings_.planning_time;
    options.planning_share = std::numeric_limits<double>::infinity();  // what is measured comes after planning
    Session session = sides_.session(options, std::max(budget, sides_.plain_peak()));
    sides_.reprise(session);
    session.budget(sides_.level() + budget);
    sides_.warm_up(session, settings_.planning_time);
    return session;
  }

  const ComparedModel& model_;
  const CompareSettings& settings_;
  PythonPeers* python_;
  Sides sides_;
  Plain cpp_plain_, python_plain_;
  std::list<MeasuredRival> rivals_;
  std::list<ReprisePoint> points_;
  std::list<Session> sessions_;  // of the points that are kept, in their order
};

}  // namespace

Json compare_sides(const ComparedModel& model, const CompareSettings& settings, PythonPeers* python) {
  return Comparison(model, settings, python).run();
}

}  // namespace reprise::benchmarks
