// The adjoint of a differential equation whose field is spread over several processes.
//
//   mpirun -n 3 ranks [STEPS]      or without mpirun, alone
//
// Burgers' equation on a ring, as in burgers.cpp. Each rank has a part of the cells and a chain of its own, whose
// closures exchange the cells at the borders with the neighbours. Ranks have to run the same layers in the same order,
// or their messages would not meet: they have the same number of layers and the same schedule, agreed from the largest
// state of all ranks, since parts differ in size. The gradient is compared with the one of all states remembered, and
// with finite differences.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <vector>

#include "reprise/chain/chain.h"

namespace {

constexpr int cells = 200;
constexpr double viscosity = 0.01, dx = 1.0 / cells, dt = 5e-5;
using State = std::vector<double>;

struct Ranks {
  int rank = 0, count = 1;
  [[nodiscard]] int left() const { return (rank + count - 1) % count; }
  [[nodiscard]] int right() const { return (rank + 1) % count; }
};
Ranks ranks;

// Parts grow with the rank, 1 : 2 : 3 and so on.
int first_cell(int rank) {
  return cells * rank * (rank + 1) / (ranks.count * (ranks.count + 1));
}

double sum(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

// The cells beside this rank's, from its neighbours.
struct Border {
  double left, right;
};
Border border_of(const State& u) {
  Border border{};
  MPI_Sendrecv(&u.back(), 1, MPI_DOUBLE, ranks.right(), 0, &border.left, 1, MPI_DOUBLE, ranks.left(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(&u.front(), 1, MPI_DOUBLE, ranks.left(), 1, &border.right, 1, MPI_DOUBLE, ranks.right(), 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return border;
}

// One step of time: central differences, explicit Euler. Writes into a state that is not needed any more.
void forward(const State& u, State& next) {
  const Border border = border_of(u);
  const std::size_t n = u.size();
  next.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double left = i == 0 ? border.left : u[i - 1], right = i + 1 == n ? border.right : u[i + 1];
    next[i] = u[i] - dt * u[i] * (right - left) / (2 * dx) + dt * viscosity * (right - 2 * u[i] + left) / (dx * dx);
  }
}

// Its adjoint. What it adds to the cells beside this rank's goes back to the neighbours.
State backward(const State& u, const State& gradient) {
  const Border border = border_of(u);
  const std::size_t n = u.size();
  State result(n, 0.0);
  Border beyond{};
  for (std::size_t i = 0; i < n; ++i) {
    const double left = i == 0 ? border.left : u[i - 1], right = i + 1 == n ? border.right : u[i + 1];
    const double advection = dt * u[i] / (2 * dx), diffusion = dt * viscosity / (dx * dx);
    result[i] += gradient[i] * (1 - dt * (right - left) / (2 * dx) - 2 * diffusion);
    (i + 1 == n ? beyond.right : result[i + 1]) += gradient[i] * (diffusion - advection);
    (i == 0 ? beyond.left : result[i - 1]) += gradient[i] * (diffusion + advection);
  }
  double from_left = 0, from_right = 0;
  MPI_Sendrecv(&beyond.right, 1, MPI_DOUBLE, ranks.right(), 2, &from_left, 1, MPI_DOUBLE, ranks.left(), 2,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&beyond.left, 1, MPI_DOUBLE, ranks.left(), 3, &from_right, 1, MPI_DOUBLE, ranks.right(), 3,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  result.front() += from_left;
  result.back() += from_right;
  return result;
}

// This rank's part of the initial state, `distance` away from it in some direction.
double direction(int cell) {
  return std::cos(6 * std::numbers::pi * cell * dx);
}
State initial_state(double distance = 0) {
  State u;
  for (int i = first_cell(ranks.rank); i < first_cell(ranks.rank + 1); ++i) {
    u.push_back(0.5 + std::sin(2 * std::numbers::pi * i * dx) + distance * direction(i));
  }
  return u;
}

// Half the squared distance to a constant, over all ranks.
double misfit(const State& u) {
  double mine = 0;
  for (const double x : u) mine += (x - 0.5) * (x - 0.5);
  return sum(mine) * dx / 2;
}
double misfit_after(State u, int steps) {
  State next;
  for (int k = 0; k < steps; ++k) {
    forward(u, next);
    u.swap(next);
  }
  return misfit(u);
}

// As many slots as fit into these bytes on the rank with the largest state; a step needs two states besides.
reprise::SchedulePointer agreed_schedule(reprise::Bytes budget, const State& mine) {
  long long bytes = reprise::StateTraits<State>::bytes(mine), largest = 0;
  MPI_Allreduce(&bytes, &largest, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
  return reprise::schedule::slots(static_cast<int>(std::max(1LL, budget / largest - 2)));
}

int run(int steps) {
  reprise::Chain<State> chain(
      steps, [](int, const State& u, State& next) { forward(u, next); },
      [](int, const State& u, const State& gradient) { return backward(u, gradient); });
  const auto gradient_with = [&](const reprise::SchedulePointer& schedule) {
    chain.schedule(schedule);
    State gradient = chain.forward(initial_state());
    for (double& x : gradient) x = (x - 0.5) * dx;
    gradient = chain.backward(std::move(gradient));
    std::printf("rank %d of %d, %zu cells, %s: %lld bytes of states at most, %llu calls of forward\n", ranks.rank,
                ranks.count, gradient.size(), schedule->text().c_str(),
                static_cast<long long>(chain.statistics().peak_stored),
                static_cast<unsigned long long>(chain.statistics().forward_calls));
    return gradient;
  };

  const reprise::Bytes budget = 16 * 1024;
  const State plain = gradient_with(reprise::schedule::everything());
  const State limited = gradient_with(agreed_schedule(budget, initial_state()));
  const bool within = chain.statistics().peak_stored <= budget;

  double mine = 0;
  for (std::size_t i = 0; i < limited.size(); ++i) {
    mine += limited[i] * direction(first_cell(ranks.rank) + static_cast<int>(i));
  }
  constexpr double distance = 1e-5;
  const double by_gradient = sum(mine);
  const double by_differences =
      (misfit_after(initial_state(distance), steps) - misfit_after(initial_state(-distance), steps)) / (2 * distance);
  const double error = std::abs(by_gradient - by_differences) / std::abs(by_differences);
  if (ranks.rank == 0) {
    std::printf("slope by the adjoint %.12g, by finite differences %.12g: relative difference %.1e\n", by_gradient,
                by_differences, error);
  }
  const bool same = sum(plain == limited && within ? 1 : 0) == ranks.count;
  if (ranks.rank == 0) std::printf("identical to everything remembered on all ranks: %s\n", same ? "yes" : "NO");
  return same && error < 1e-6 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.count);
  const int code = run(argc > 1 ? std::atoi(argv[1]) : 2'000);
  MPI_Finalize();
  return code;
}
