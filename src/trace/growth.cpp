#include "reprise/trace/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "reprise/trace/error.h"
#include "trace/printable.h"

namespace reprise {
using namespace internal;
namespace {

// ---- one number ----------------------------------------------------------------------------------------------------

// Bytes are rounded up to 64 when they are allocated, and no line goes through rounded numbers.
constexpr double rounding_of_bytes = 128;
// Costs are measured: what is this close to a straight line is one.
constexpr double noise_of_costs = 0.1;

// A number of a trace at the recorded sizes, ascending.
struct Point {
  double size = 0, number = 0;
};
using Points = std::vector<Point>;

double line(const Point& a, const Point& b, double size) {
  return a.number + (size - a.size) * ((b.number - a.number) / (b.size - a.size));
}

// Newton's form: whole numbers that lie on a parabola of whole numbers come out whole after rounding.
double parabola(const Point& a, const Point& b, const Point& c, double size) {
  const double first = (b.number - a.number) / (b.size - a.size);
  const double second = (c.number - b.number) / (c.size - b.size);
  return a.number + (size - a.size) * (first + (size - b.size) * ((second - first) / (c.size - a.size)));
}

bool is_convex(const Point& a, const Point& b, const Point& c) {
  return b.number <= line(a, c, b.size);
}

// How a number goes on: the simplest curve that the recorded ones do not contradict.
class Tendency {
 public:
  Tendency(const Points& points, double tolerance)
      : first_(points.front()), middle_(points[points.size() / 2]), last_(points.back()) {
    shape_ = Shape::straight;
    if (points.size() == 2 || farthest(points) <= tolerance) return;
    // What grows less and less has found its limit, or is noise: it is not expected to shrink again.
    shape_ = is_convex(first_, middle_, last_) ? Shape::curved : Shape::bent;
  }

  [[nodiscard]] double at(double size) const {
    switch (shape_) {
      case Shape::straight: return line(first_, last_, size);
      case Shape::curved: return parabola(first_, middle_, last_, size);
      case Shape::bent: break;
    }
    return size < middle_.size ? line(first_, middle_, size) : line(middle_, last_, size);
  }

  // Returns the most by which a recorded number is above it.
  [[nodiscard]] double most_above(const Points& points) const {
    double most = 0;
    for (const Point& point : points) most = std::max(most, point.number - at(point.size));
    return most;
  }

 private:
  enum class Shape { straight, curved, bent };

  [[nodiscard]] double farthest(const Points& points) const {
    double most = 0;
    for (const Point& point : points) most = std::max(most, std::abs(point.number - at(point.size)));
    return most;
  }

  Shape shape_;
  Point first_, middle_, last_;
};

double largest(const Points& points) {
  return std::max_element(points.begin(), points.end(),
                          [](const Point& a, const Point& b) { return a.number < b.number; })
      ->number;
}

// Keeps a prediction for a larger size from being below the number at the largest recorded size.
double no_less(double number, const Points& points, double size) {
  return std::max(number, size > points.back().size ? points.back().number : 0.0);
}

Bytes bytes_at(const Points& points, double size) {
  const Tendency tendency(points, rounding_of_bytes);
  // Rounds up: a prediction that is too large is safe.
  const double number = std::round(tendency.at(size) + tendency.most_above(points));
  const double limited = std::min(no_less(number, points, size), static_cast<double>(largest_bytes));
  return static_cast<Bytes>(limited);
}

double cost_at(const Points& points, double size) {
  const Tendency tendency(points, noise_of_costs * largest(points));
  return no_less(tendency.at(size), points, size);
}

// ---- one structure -------------------------------------------------------------------------------------------------

std::string named(const Trace& trace, Id moment) {
  const std::string& label = trace.label(moment);
  const char* const kind = trace.is_event(moment) ? "event" : "operator";
  return fmt::format("{} '{}'", kind, printable(label));
}

// Two traces and what is said about them if they differ.
class StructureCheck {
 public:
  StructureCheck(const SizedTrace& one, const SizedTrace& other)
      : one_(one.trace), other_(other.trace), size_(one.size), other_size_(other.size) {}

  void run() const {
    const Id moments = std::min(one_.moment_count(), other_.moment_count());
    for (Id m = 0; m < moments; ++m) compare_moments(m);
    if (one_.moment_count() != other_.moment_count()) {
      const bool first_is_longer = one_.moment_count() > moments;
      fail(
          fmt::format("moments[{}]", moments),
          fmt::format("at size {} there is {}, and at size {} the trace is over", first_is_longer ? size_ : other_size_,
                      named(first_is_longer ? one_ : other_, moments), first_is_longer ? other_size_ : size_));
    }
    if (one_.values.size() != other_.values.size()) {
      fail("values", fmt::format("at size {} there are {}, at size {} {}", size_, one_.values.size(), other_size_,
                                 other_.values.size()));
    }
    for (Id v = 0; v < one_.value_count(); ++v) compare_values(v);
  }

 private:
  void compare_moments(Id m) const {
    const std::string place = fmt::format("moments[{}]", m);
    const Moment &a = one_.moments[m], &b = other_.moments[m];
    if (a.runs.has_value() != b.runs.has_value() || one_.label(m) != other_.label(m)) {
      fail(place,
           fmt::format("at size {} it is {}, at size {} {}", size_, named(one_, m), other_size_, named(other_, m)));
    }
    if (a.runs != b.runs || one_.inputs(m) != other_.inputs(m) || one_.outputs(m) != other_.outputs(m)) {
      fail(place, fmt::format("{} has other values at size {} than at size {}", named(one_, m), size_, other_size_));
    }
    if (one_.replayable(m) != other_.replayable(m)) {
      const bool here = one_.replayable(m);
      fail(place, fmt::format("{} may be replayed at size {}, but not at size {}", named(one_, m),
                              here ? size_ : other_size_, here ? other_size_ : size_));
    }
  }

  void compare_values(Id v) const {
    const Value &a = one_.values[v], &b = other_.values[v];
    const char* const what = a.maker != b.maker             ? "has another maker"
                             : a.held != b.held             ? "is held by the program for another stretch"
                             : a.takes_over != b.takes_over ? "takes over another storage"
                                                            : nullptr;
    if (what == nullptr) return;
    const std::string of = a.maker ? fmt::format(" of '{}'", printable(one_.operators[*a.maker].name)) : "";
    fail(fmt::format("values[{}]", v),
         fmt::format("value {}{} {} at size {} than at size {}", v, of, what, size_, other_size_));
  }

  [[noreturn]] void fail(const std::string& place, const std::string& reason) const {
    throw BadInput(
        "", place,
        reason + ": the traces are of different programs, or the program does something else at another size");
  }

  const Trace &one_, &other_;
  const std::int64_t size_, other_size_;
};

// ---- all numbers ---------------------------------------------------------------------------------------------------

// One of the traces is followed and gets the numbers of the new size.
class Grower {
 public:
  Grower(const std::vector<SizedTrace>& recorded, std::int64_t size)
      : recorded_(recorded), size_(static_cast<double>(size)), trace_(recorded.back().trace) {}

  Trace run() {
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      trace_.operators[i].cost = cost([i](const Trace& t) { return t.operators[i].cost; });
      trace_.operators[i].workspace = bytes([i](const Trace& t) { return t.operators[i].workspace; });
    }
    for (std::size_t i = 0; i < trace_.values.size(); ++i) {
      trace_.values[i].bytes = bytes([i](const Trace& t) { return t.values[i].bytes; });
    }
    for (std::size_t i = 0; i < trace_.moments.size(); ++i) {
      trace_.moments[i].other = bytes([i](const Trace& t) { return t.moments[i].other; });
      trace_.moments[i].cost = cost([i](const Trace& t) { return t.moments[i].cost; });
    }
    std::vector<Tier> tiers;
    for (Tier& tier : trace_.tiers) {
      if (in_all(tier.name)) tiers.push_back(grown(std::move(tier)));
    }
    trace_.tiers = std::move(tiers);
    check(trace_);
    return std::move(trace_);
  }

 private:
  template <typename Get>
  [[nodiscard]] Points points(const Get& get) const {
    Points points;
    for (const SizedTrace& at : recorded_) {
      points.push_back({static_cast<double>(at.size), static_cast<double>(get(at.trace))});
    }
    return points;
  }
  template <typename Get>
  [[nodiscard]] Bytes bytes(const Get& get) const {
    return bytes_at(points(get), size_);
  }
  template <typename Get>
  [[nodiscard]] double cost(const Get& get) const {
    return cost_at(points(get), size_);
  }

  static const Tier* find(const Trace& trace, const std::string& name) {
    const auto at = std::find_if(trace.tiers.begin(), trace.tiers.end(), [&](const Tier& t) { return t.name == name; });
    return at == trace.tiers.end() ? nullptr : &*at;
  }
  [[nodiscard]] bool in_all(const std::string& name) const {
    return std::all_of(recorded_.begin(), recorded_.end(), [&](const SizedTrace& at) { return find(at.trace, name); });
  }

  // Whether a value packs depends on its contents, which differ from step to step.
  [[nodiscard]] Tier grown(Tier tier) const {
    std::vector<TierEntry> entries;
    for (const TierEntry& entry : tier.entries) {
      const auto of = [&](const Trace& t) { return find(t, tier.name)->find(entry.value); };
      if (!std::all_of(recorded_.begin(), recorded_.end(), [&](const SizedTrace& at) { return of(at.trace); }))
        continue;
      entries.push_back({entry.value, bytes([&](const Trace& t) { return of(t)->bytes; }),
                         cost([&](const Trace& t) { return of(t)->put_cost; }),
                         cost([&](const Trace& t) { return of(t)->get_cost; }),
                         cost([&](const Trace& t) { return of(t)->put_time; }),
                         cost([&](const Trace& t) { return of(t)->get_time; })});
    }
    tier.entries = std::move(entries);
    return tier;
  }

  const std::vector<SizedTrace>& recorded_;
  const double size_;
  Trace trace_;
};

}  // namespace

Growth::Growth(std::vector<SizedTrace> recorded) : recorded_(std::move(recorded)) {
  if (recorded_.size() < 2) {
    throw BadInput("", "sizes", fmt::format("there are traces of {} sizes, and growth needs two", recorded_.size()));
  }
  std::stable_sort(recorded_.begin(), recorded_.end(),
                   [](const SizedTrace& a, const SizedTrace& b) { return a.size < b.size; });
  if (recorded_.front().size <= 0) {
    throw BadInput("", "sizes", fmt::format("{} is not above zero", recorded_.front().size));
  }
  for (std::size_t i = 1; i < recorded_.size(); ++i) {
    if (recorded_[i - 1].size == recorded_[i].size) {
      throw BadInput("", "sizes", fmt::format("there are two traces of size {}", recorded_[i].size));
    }
    StructureCheck(recorded_[i - 1], recorded_[i]).run();
  }
}

Trace Growth::at(std::int64_t size) const {
  if (size <= 0) throw BadOption(fmt::format("[growth] size is {}, but has to be above zero", size));
  for (const SizedTrace& known : recorded_) {
    if (known.size == size) return known.trace;
  }
  return Grower(recorded_, size).run();
}

}  // namespace reprise
