#include "integer_program.h"

#include <cmath>
#include <stdexcept>

#include "plan/bounds/highs.h"

namespace reprise::testing {
using namespace internal;
namespace {

class StagedProgram {
 public:
  StagedProgram(const Trace& trace, Bytes budget) : n_(trace.moment_count()), budget_(static_cast<double>(budget)) {
    users_.resize(n_);
    for (Id node = 0; node < n_; ++node) {
      const Operator& op = trace.operators[node];
      if (op.outputs != std::vector<Id>{node} || op.workspace != 0 || !op.replayable) {
        throw std::logic_error("not as from a graph file");
      }
      cost_.push_back(op.cost);
      bytes_.push_back(static_cast<double>(trace.values[node].bytes));
      inputs_.push_back(op.inputs);
      for (const Id input : op.inputs) users_[input].push_back(node);
    }
    add_decisions();
    add_dependencies();
    for (Id stage = 0; stage < n_; ++stage) add_memory(stage);
  }

  [[nodiscard]] const LinearProgram& program() const { return program_; }
  [[nodiscard]] double cost_of(const std::vector<double>& x) const {
    double sum = 0;
    for (Id t = 0; t < n_; ++t) {
      for (Id i = 0; i <= t; ++i) sum += cost_[i] * std::round(x[R(t, i)]);
    }
    return sum;
  }

 private:
  // In stage t operators 0..t can be computed, and what was made in earlier stages, 0..t-1, can be there when it
  // starts.
  [[nodiscard]] int R(Id t, Id i) const { return computed_[t][i]; }
  [[nodiscard]] int S(Id t, Id i) const { return kept_[t][i]; }

  void add_decisions() {
    computed_.resize(n_);
    kept_.resize(n_);
    for (Id t = 0; t < n_; ++t) {
      for (Id i = 0; i <= t; ++i) computed_[t].push_back(program_.variable(cost_[i], i == t ? 1 : 0, 1, true));
      for (Id i = 0; i < t; ++i) kept_[t].push_back(program_.variable(0, 0, 1, true));
    }
  }

  void add_dependencies() {
    for (Id t = 0; t < n_; ++t) {
      for (Id i = 0; i < t; ++i) {  // kept: it was computed or kept in the stage before
        LinearProgram::Terms row{{S(t, i), 1}, {R(t - 1, i), -1}};
        if (i < t - 1) row.push_back({S(t - 1, i), -1});
        program_.row(row, -LinearProgram::infinity(), 0);
      }
      for (Id j = 0; j <= t; ++j) {
        for (const Id i : inputs_[j]) {
          program_.row({{R(t, j), 1}, {R(t, i), -1}, {S(t, i), -1}}, -LinearProgram::infinity(), 0);
        }
      }
    }
  }

  // What is live after each operator of the stage, step by step: what it makes comes, what is not needed any more goes.
  void add_memory(Id t) {
    int live = -1;
    LinearProgram::Terms freed;
    for (Id k = 0; k <= t; ++k) {
      const int now = program_.variable(0, 0, budget_);
      LinearProgram::Terms row{{now, 1}, {R(t, k), -bytes_[k]}};
      if (k == 0) {
        for (Id i = 0; i < t; ++i) row.push_back({S(t, i), -bytes_[i]});
      } else {
        row.push_back({live, -1});
        row.insert(row.end(), freed.begin(), freed.end());
      }
      program_.row(row, 0, 0);
      live = now;
      freed.clear();
      add_free(t, k, k, freed);
      for (const Id i : inputs_[k]) add_free(t, i, k, freed);
    }
  }

  // Free(t, i, k) = 1 exactly if k is computed in stage t, i is not kept for the next one, and nothing computed after k
  // in this stage reads it: if none of these hazards is there.
  void add_free(Id t, Id i, Id k, LinearProgram::Terms& freed) {
    const int free = program_.variable(0, 0, 1, true);
    freed.push_back({free, bytes_[i]});
    LinearProgram::Terms hazards{{R(t, k), -1}};
    double constant = 1;  // hazards = constant + terms
    int most = 1;
    if (t + 1 < n_) hazards.push_back({S(t + 1, i), 1}), ++most;
    for (const Id user : users_[i]) {
      if (user > k && user <= t) hazards.push_back({R(t, user), 1}), ++most;
    }
    LinearProgram::Terms at_least = hazards, at_most = hazards;
    at_least.push_back({free, 1});  // 1 - free <= hazards
    program_.row(at_least, 1 - constant, LinearProgram::infinity());
    at_most.push_back({free, static_cast<double>(most)});  // hazards <= most (1 - free)
    program_.row(at_most, -LinearProgram::infinity(), most - constant);
  }

  const Id n_;
  const double budget_;
  LinearProgram program_;
  std::vector<double> cost_, bytes_;
  std::vector<std::vector<Id>> inputs_, users_;
  std::vector<std::vector<int>> computed_, kept_;
};

}  // namespace

StagedOptimum staged_optimum(const Trace& trace, Bytes budget, double seconds) {
  const StagedProgram staged(trace, budget);
  SolveOptions options;
  options.integers = true;
  options.seconds = seconds;
  const ProgramResult found = solve(staged.program(), options);
  StagedOptimum result;
  result.solved = found.status != ProgramResult::Status::stopped;
  if (found.status == ProgramResult::Status::optimal) result.cost = staged.cost_of(found.x);
  return result;
}

}  // namespace reprise::testing
