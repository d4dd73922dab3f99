// Linear and mixed-integer programs, solved by HiGHS if it is there.
//
// HiGHS is loaded when first asked for: from the library that the environment variable REPRISE_HIGHS names (ignored in
// programs that have rights their callers do not have), else by its name. Without it `solver_available` is false and
// planning goes on with weaker bounds.
//
// HiGHS is asked to solve on one thread, and keeps what it knows by thread. In a process that was forked while another
// thread was in HiGHS, or was loading it, its state is undefined: there it is not available.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::internal {

// minimise cost * x, row_low <= A x <= row_high, low <= x <= high. Every variable has finite limits, which is what
// makes a bound from any dual solution safe.
class LinearProgram {
 public:
  using Terms = std::vector<std::pair<int, double>>;

  int variable(double cost, double low, double high, bool integer = false);
  // Lowers the upper limit of a variable; a higher one is ignored.
  void limit(int variable, double high) { high_[variable] = std::min(high_[variable], high); }
  void add_cost(int variable, double cost) { cost_[variable] += cost; }
  // Terms of the same variable are added up.
  void row(const Terms& terms, double low, double high);
  static double infinity();

  [[nodiscard]] int variables() const { return static_cast<int>(cost_.size()); }
  [[nodiscard]] int rows() const { return static_cast<int>(row_low_.size()); }
  [[nodiscard]] std::size_t nonzeros() const { return index_.size(); }

 private:
  friend class HighsSolver;
  std::vector<double> cost_, low_, high_, row_low_, row_high_, value_;
  std::vector<int> integer_, index_, start_{0};
  Terms merged_;
};

struct ProgramResult {
  enum class Status { optimal, infeasible, stopped };
  Status status = Status::stopped;
  std::optional<double> bound;  // no solution has a smaller objective, with rounding errors allowed for
  std::vector<double> x;        // a solution if optimal, else what there was, or empty
};

struct SolveOptions {
  bool integers = false;          // solve as an integer program
  std::optional<double> seconds;  // none: no limit
  std::function<bool()> stop;     // asked now and then; true: stop
};

[[nodiscard]] bool solver_available();
// Returns why the solver is not available; "" if it is.
[[nodiscard]] const std::string& solver_problem();
// Requires solver_available().
[[nodiscard]] ProgramResult solve(const LinearProgram&, const SolveOptions&);

}  // namespace reprise::internal
