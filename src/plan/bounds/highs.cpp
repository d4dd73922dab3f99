#include "plan/bounds/highs.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace reprise::internal {
namespace {

// The part of the C interface of HiGHS 1.x that is used here. Its header is not needed to build Reprise.
struct CallbackIn {
  int user_interrupt;  // the first field; the rest is not touched
};
using Callback = void (*)(int, const char*, const void*, CallbackIn*, void*);

struct Library {
  void* (*create)() = nullptr;
  void (*destroy)(void*) = nullptr;
  int (*set_bool)(void*, const char*, int) = nullptr;
  int (*set_int)(void*, const char*, int) = nullptr;
  int (*set_double)(void*, const char*, double) = nullptr;
  int (*set_string)(void*, const char*, const char*) = nullptr;
  int (*pass_mip)(void*, int, int, int, int, int, double, const double*, const double*, const double*, const double*,
                  const double*, const int*, const int*, const double*, const int*) = nullptr;
  int (*set_callback)(void*, Callback, void*) = nullptr;
  int (*start_callback)(void*, int) = nullptr;
  int (*run)(void*) = nullptr;
  int (*model_status)(const void*) = nullptr;
  int (*get_double)(const void*, const char*, double*) = nullptr;
  int (*get_solution)(const void*, double*, double*, double*, double*) = nullptr;

  bool usable = false;
  std::string problem;

  Library() {
    void* handle = open();
    if (!handle) return;
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
      if (!function && problem.empty()) problem = std::string("the HiGHS library has no ") + symbol;
    };
    find(create, "Highs_create");
    find(destroy, "Highs_destroy");
    find(set_bool, "Highs_setBoolOptionValue");
    find(set_int, "Highs_setIntOptionValue");
    find(set_double, "Highs_setDoubleOptionValue");
    find(set_string, "Highs_setStringOptionValue");
    find(pass_mip, "Highs_passMip");
    find(set_callback, "Highs_setCallback");
    find(start_callback, "Highs_startCallback");
    find(run, "Highs_run");
    find(model_status, "Highs_getModelStatus");
    find(get_double, "Highs_getDoubleInfoValue");
    find(get_solution, "Highs_getSolution");
    usable = problem.empty();
  }

  // Never closed: HiGHS may keep threads of its own.
  void* open() {
    std::vector<std::string> places;
    // Null in a program with rights that its caller does not have (setuid and the like): it would load what the caller
    // names. Safe as long as nothing calls setenv, and Reprise does not.
    if (const char* named = secure_getenv("REPRISE_HIGHS")) {
      places.emplace_back(named);  // what the user names is meant; nothing else is tried
    } else {
      places = {"libhighs.so", "libhighs.so.1"};
    }
    for (const std::string& place : places) {
      if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    }
    problem = "HiGHS was not found";
    if (places.size() == 1) problem += " at '" + places.front() + "'";
    return nullptr;
  }
};

// ---- fork ----------------------------------------------------------------------------------------------------------

std::atomic<int> busy = 0;  // threads that are in HiGHS, or load it
std::atomic<bool> lost = false;

class Busy {
 public:
  Busy() { ++busy; }
  ~Busy() { --busy; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
};

[[maybe_unused]] const int watching_forks = pthread_atfork(nullptr, nullptr, [] {
  if (busy.exchange(0) > 0) lost = true;
});

const Library& library() {
  const Busy loading;
  static const Library loaded;
  return loaded;
}

constexpr int row_wise = 2, minimise = 1;
constexpr int status_optimal = 7, status_infeasible = 8;
constexpr int simplex_interrupt = 1, interior_point_interrupt = 2, integer_interrupt = 6;

}  // namespace

double LinearProgram::infinity() {
  return std::numeric_limits<double>::infinity();
}

int LinearProgram::variable(double cost, double low, double high, bool integer) {
  cost_.push_back(cost);
  low_.push_back(low);
  high_.push_back(high);
  integer_.push_back(integer ? 1 : 0);
  return variables() - 1;
}

void LinearProgram::row(const Terms& terms, double low, double high) {
  merged_ = terms;
  std::sort(merged_.begin(), merged_.end());
  for (std::size_t i = 0; i < merged_.size();) {
    const int variable = merged_[i].first;
    double sum = 0;
    for (; i < merged_.size() && merged_[i].first == variable; ++i) sum += merged_[i].second;
    if (sum == 0) continue;
    index_.push_back(variable);
    value_.push_back(sum);
  }
  start_.push_back(static_cast<int>(index_.size()));
  row_low_.push_back(low);
  row_high_.push_back(high);
}

class HighsSolver {
 public:
  HighsSolver(const LinearProgram& program, const SolveOptions& options)
      : program_(program), options_(options), highs_(library().create()) {}
  ~HighsSolver() { library().destroy(highs_); }
  HighsSolver(const HighsSolver&) = delete;
  HighsSolver& operator=(const HighsSolver&) = delete;

  ProgramResult solve() {
    const Library& highs = library();
    highs.set_bool(highs_, "output_flag", 0);
    highs.set_int(highs_, "threads", 1);
    highs.set_string(highs_, "parallel", "off");
    // Presolve of HiGHS 1.15.1 gets some small integer programs wrong; a bound from there would prove what is not true.
    if (options_.integers) highs.set_string(highs_, "presolve", "off");
    highs.set_double(highs_, "mip_rel_gap", 1e-7);
    highs.set_double(highs_, "mip_abs_gap", 1e-3);
    if (options_.seconds) highs.set_double(highs_, "time_limit", std::max(0.0, *options_.seconds));
    highs.pass_mip(highs_, program_.variables(), program_.rows(), static_cast<int>(program_.nonzeros()), row_wise,
                   minimise, 0, program_.cost_.data(), program_.low_.data(), program_.high_.data(),
                   program_.row_low_.data(), program_.row_high_.data(), program_.start_.data(), program_.index_.data(),
                   program_.value_.data(), options_.integers ? program_.integer_.data() : nullptr);
    if (options_.stop) {
      highs.set_callback(highs_, &HighsSolver::on_callback, const_cast<SolveOptions*>(&options_));
      for (const int kind : {simplex_interrupt, interior_point_interrupt, integer_interrupt}) {
        highs.start_callback(highs_, kind);
      }
    }
    highs.run(highs_);

    ProgramResult result;
    const int status = highs.model_status(highs_);
    if (status == status_infeasible) {
      result.status = ProgramResult::Status::infeasible;
      return result;
    }
    if (status == status_optimal) result.status = ProgramResult::Status::optimal;
    result.x.assign(program_.variables(), 0);
    std::vector<double> column_dual(program_.variables(), 0), row(program_.rows(), 0), row_dual(program_.rows(), 0);
    if (highs.get_solution(highs_, result.x.data(), column_dual.data(), row.data(), row_dual.data()) != 0)
      result.x.clear();
    if (options_.integers) {
      double dual_bound = 0;
      if (highs.get_double(highs_, "mip_dual_bound", &dual_bound) == 0 && std::isfinite(dual_bound)) {
        result.bound = dual_bound - 1e-6 * std::max(1.0, std::abs(dual_bound));  // the solver's tolerances
      }
    } else {
      result.bound = safe_bound(row_dual);
    }
    return result;
  }

 private:
  static void on_callback(int, const char*, const void*, CallbackIn* in, void* options) {
    if (in && static_cast<const SolveOptions*>(options)->stop()) in->user_interrupt = 1;
  }

  // Any duals y give the bound  sum_r y_r b_r + sum_j min over x_j of (c_j - y A_j) x_j, whatever tolerances the solver
  // had and wherever it was stopped (Neumaier and Shcherbina 2004): with the right y it is the optimum.
  [[nodiscard]] std::optional<double> safe_bound(const std::vector<double>& row_dual) const {
    long double bound = 0, size = 0;
    std::vector<long double> reduced(program_.cost_.begin(), program_.cost_.end());
    for (int r = 0; r < program_.rows(); ++r) {
      double y = row_dual[r];
      if (!std::isfinite(y)) return std::nullopt;
      const double side = y > 0 ? program_.row_low_[r] : program_.row_high_[r];
      if (!std::isfinite(side)) y = 0;
      if (y == 0) continue;
      bound += static_cast<long double>(y) * side;
      size += std::abs(y * side);
      for (int i = program_.start_[r]; i < program_.start_[r + 1]; ++i) {
        reduced[program_.index_[i]] -= static_cast<long double>(y) * program_.value_[i];
      }
    }
    for (int j = 0; j < program_.variables(); ++j) {
      const long double term = reduced[j] * (reduced[j] > 0 ? program_.low_[j] : program_.high_[j]);
      bound += term;
      size += std::abs(term);
    }
    return static_cast<double>(bound - 1e-15L * size);  // what summing can have lost
  }

  const LinearProgram& program_;
  const SolveOptions& options_;
  void* highs_;
};

bool solver_available() {
  return !lost && library().usable;
}
const std::string& solver_problem() {
  static const std::string forked = "another thread was using HiGHS when this process was forked";
  return lost ? forked : library().problem;
}

ProgramResult solve(const LinearProgram& program, const SolveOptions& options) {
  const Busy solving;
  return HighsSolver(program, options).solve();
}

}  // namespace reprise::internal
