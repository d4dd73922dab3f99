#include "compare_measure.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <list>

#include "compare_findings.h"
#include "compare_python.h"
#include "compare_steps.h"
#include "reprise/torch/errors.h"

namespace reprise::benchmarks {
namespace {

using TakeStep = std::function<Sample()>;

// One side, and where its measurements go. No measurements: only its ratios are taken.
struct Side {
  TakeStep step;
  std::vector<double>* ratios = nullptr;
  Measured* measured = nullptr;
  std::string name;
};

void note(const Sample& sample, Measured& into) {
  into.peak = std::max(into.peak, sample.peak);
  into.buffers_equal = into.buffers_equal && sample.buffers_equal;
  if (sample.gradient_error) into.gradient_error = std::max(into.gradient_error.value_or(0), *sample.gradient_error);
}

// The sides of one engine. Two of them stand between two plain steps, and are compared with the mean of these.
class Round {
 public:
  Round(TakeStep plain, PlainResult& result) : plain_(std::move(plain)), result_(result) {
    sides_.push_back({plain_, &result.again, nullptr, "plain"});
  }

  void add(TakeStep step, Measured& into, const std::string& name) {
    sides_.push_back({std::move(step), &into.ratios, &into, name});
  }

  void run(bool backwards) {
    std::vector<const Side*> order;
    for (const Side& side : sides_) order.push_back(&side);
    if (backwards) std::reverse(order.begin(), order.end());
    double before = plain_step();
    for (std::size_t i = 0; i < order.size(); i += between_plain) {
      const std::size_t end = std::min(i + between_plain, order.size());
      std::vector<double> seconds;
      for (std::size_t k = i; k < end; ++k) seconds.push_back(side_step(*order[k]));
      const double after = plain_step();
      for (std::size_t k = i; k < end; ++k) {
        if (seconds[k - i] > 0) order[k]->ratios->push_back(seconds[k - i] / ((before + after) / 2));
      }
      before = after;
    }
  }

 private:
  static constexpr std::size_t between_plain = 2;

  double plain_step() {
    const Sample sample = plain_();
    result_.peak = std::max(result_.peak, sample.peak);
    result_.seconds.push_back(sample.seconds);
    return sample.seconds;
  }

  // 0: it failed, now or before.
  static double side_step(const Side& side) {
    if (side.measured != nullptr && !side.measured->failure.empty()) return 0;
    try {
      const Sample sample = side.step();
      if (side.measured != nullptr) note(sample, *side.measured);
      return sample.seconds;
    } catch (const std::exception& error) {
      if (side.measured == nullptr) throw;
      side.measured->failure = error.what();
      side.ratios->clear();
      std::cerr << side.name << " failed: " << error.what() << '\n';
      return 0;
    }
  }

  TakeStep plain_;
  PlainResult& result_;
  std::vector<Side> sides_;
};

class Comparison {
 public:
  Comparison(const std::string& model, const CompareSettings& settings, PythonPeers* python)
      : settings_(settings), python_(python), steps_(model) {
    result_.model = model;
    for (const Rival& rival : rivals_of(model, settings.quick)) result_.rivals.push_back({rival, {}});
    if (python_ == nullptr) return;
    python_->use_model(model);
    result_.python.emplace();
  }

  ModelResult run(const std::string& no_python) {
    for (RivalResult& rival : result_.rivals) prepare(rival, no_python);
    prepare_reprise();
    Round cpp([&] { return steps_.plain(); }, result_.cpp);
    for (RivalResult& rival : result_.rivals) {
      if (rival.rival.engine == Engine::cpp) cpp.add(step_of(rival.rival), rival.measured, rival.rival.label);
    }
    auto session = sessions_.begin();
    for (ReprisePoint& point : result_.reprise) {
      if (!point.measured.failure.empty()) continue;
      cpp.add([this, &session = *session++] { return steps_.reprise(session); }, point.measured, "Reprise");
    }
    std::optional<Round> python;
    if (python_ != nullptr) {
      python.emplace([&] { return python_->step("plain"); }, *result_.python);
      for (RivalResult& rival : result_.rivals) {
        if (rival.rival.engine == Engine::python) python->add(step_of(rival.rival), rival.measured, rival.rival.label);
      }
    }
    for (int i = 0; i < settings_.repetitions; ++i) {
      std::cerr << result_.model << ": repetition " << i + 1 << " of " << settings_.repetitions << '\n';
      const bool backwards = i % 2 == 1;
      if (python && backwards) python->run(backwards);
      cpp.run(backwards);
      if (python && !backwards) python->run(backwards);
    }
    return std::move(result_);
  }

 private:
  TakeStep step_of(const Rival& rival) {
    if (rival.engine == Engine::cpp) {
      return [this, regions = regions_of(rival.way)] { return steps_.region(regions); };
    }
    return [this, way = rival.way] { return python_->step(way); };
  }

  // What is done once is done here; the peak is known afterwards.
  void prepare(RivalResult& rival, const std::string& no_python) {
    const bool python = rival.rival.engine == Engine::python;
    try {
      if (python && python_ == nullptr) throw PeerError(no_python);
      if (python) python_->prepare(rival.rival.way);
      note(step_of(rival.rival)(), rival.measured);
      std::cerr << rival.rival.label << ": peak " << rival.measured.peak << '\n';
    } catch (const std::exception& error) {
      rival.measured.failure = error.what();
      std::cerr << rival.rival.label << " is not measured: " << error.what() << '\n';
    }
  }

  // One session at the peak of every rival, and some between and below them.
  void prepare_reprise() {
    result_.cpp.peak = steps_.plain_peak();
    if (python_ != nullptr) {
      python_->prepare("plain");
      result_.python->peak = python_->step("plain").peak;
    }
    constexpr double margin = 0.001;  // plain's peak, which shares are of, may still grow by a little
    std::vector<double> shares;
    for (const RivalResult& rival : result_.rivals) {
      if (rival.measured.failure.empty()) shares.push_back(share_of_plain(rival, result_) - margin);
    }
    bool kept = true;
    for (const double share : shares_to_measure(std::move(shares), settings_.quick)) {
      if (!kept) break;  // nothing below it is
      ReprisePoint& point = result_.reprise.emplace_back();
      point.budget = static_cast<Bytes>(share * static_cast<double>(result_.cpp.peak));
      try {
        sessions_.push_back(steps_.settled_session(point.budget, settings_.planning_time));
        std::cerr << "Reprise at " << share << " of plain is ready\n";
      } catch (const BudgetError& error) {
        point.measured.failure = error.what();
        kept = false;
        std::cerr << "Reprise cannot keep " << share << " of plain: " << error.what() << '\n';
      }
    }
  }

  const CompareSettings& settings_;
  PythonPeers* python_;
  Steps steps_;
  ModelResult result_;
  std::list<Session> sessions_;  // of the points that are kept, in their order
};

}  // namespace

ModelResult measure(const std::string& model, const CompareSettings& settings, PythonPeers* python,
                    const std::string& no_python) {
  return Comparison(model, settings, python).run(no_python);
}

}  // namespace reprise::benchmarks
