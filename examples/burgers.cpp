// The adjoint of a time-dependent differential equation, with states in memory and on disk.
//
//   burgers [STEPS]
//
// Burgers' equation, u_t + u u_x = v u_xx on a ring, is stepped forward in time; the misfit to a given final state is
// differentiated with respect to the initial state by stepping its adjoint backward. Backward needs the states of
// forward in reverse order: a few are remembered in memory, some more on disk, the others are replayed. The gradient is
// compared with the one of all states remembered, and with finite differences.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numbers>
#include <string>
#include <vector>

#include "plain_bar.h"
#include "reprise/chain/chain.h"
#include "reprise/trace/amount.h"

namespace {

constexpr std::size_t cells = 128;
constexpr double viscosity = 0.01, dx = 1.0 / cells, dt = 5e-5;
using State = std::vector<double>;

// One step of time: central differences, explicit Euler.
State forward(const State& u) {
  State next(cells);
  for (std::size_t i = 0; i < cells; ++i) {
    const double left = u[(i + cells - 1) % cells], right = u[(i + 1) % cells];
    next[i] = u[i] - dt * u[i] * (right - left) / (2 * dx) + dt * viscosity * (right - 2 * u[i] + left) / (dx * dx);
  }
  return next;
}

// Its adjoint: the derivative of the step at u, transposed.
State backward(const State& u, const State& gradient) {
  State result(cells, 0.0);
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t left = (i + cells - 1) % cells, right = (i + 1) % cells;
    const double advection = dt * u[i] / (2 * dx), diffusion = dt * viscosity / (dx * dx);
    result[i] += gradient[i] * (1 - dt * (u[right] - u[left]) / (2 * dx) - 2 * diffusion);
    result[right] += gradient[i] * (diffusion - advection);
    result[left] += gradient[i] * (diffusion + advection);
  }
  return result;
}

State initial_state() {
  State u(cells);
  for (std::size_t i = 0; i < cells; ++i) u[i] = 0.5 + std::sin(2 * std::numbers::pi * static_cast<double>(i) * dx);
  return u;
}

// Half the squared distance to a constant, and its gradient.
double misfit(const State& u) {
  double sum = 0;
  for (const double x : u) sum += (x - 0.5) * (x - 0.5);
  return sum * dx / 2;
}
State misfit_gradient(const State& u) {
  State result(cells);
  for (std::size_t i = 0; i < cells; ++i) result[i] = (u[i] - 0.5) * dx;
  return result;
}

double misfit_after(State u, int steps) {
  for (int k = 0; k < steps; ++k) u = forward(u);
  return misfit(u);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace reprise;
  const int steps = argc > 1 ? std::atoi(argv[1]) : 10'000;
  Chain<State> chain(
      steps, [](int, const State& u) { return forward(u); },
      [](int, const State& u, State gradient) { return backward(u, gradient); });

  const auto gradient_with = [&](const char* name, const SchedulePointer& schedule) {
    chain.schedule(schedule);
    {
      ProgressBar bar(2.0 * steps);
      int done = 0;
      chain.observer([&](const ChainProgress& progress) {
        if (progress.phase != ChainProgress::Phase::replay) ++done;
        bar.show(done, std::string(reprise::name(progress.phase)) + " of step " + std::to_string(progress.layer) +
                           ", " + std::to_string(progress.replays) + " replays, " + format_bytes(progress.stored) +
                           " in memory");
      });
      const State last = chain.forward(initial_state());
      State gradient = chain.backward(misfit_gradient(last));
      chain.observer(nullptr);
      const ChainStatistics& s = chain.statistics();
      std::printf("%-24s %10s %10s %14llu %14llu\n", name, format_bytes(s.peak_stored).c_str(),
                  format_bytes(s.peak_disk).c_str(), static_cast<unsigned long long>(s.forward_calls),
                  static_cast<unsigned long long>(s.peak_remembered));
      return gradient;
    }
  };

  std::printf("%-24s %10s %10s %14s %14s\n", "", "memory", "disk", "forward calls", "states at once");
  const State plain = gradient_with("everything remembered", schedule::everything());
  // Others may be using this folder, but only this user can read the files. For data that matters, name another one.
  chain.disk({.folder = std::filesystem::temp_directory_path()});
  const State limited =
      gradient_with("10 in memory, 60 on disk",
                    schedule::memory_and_disk({.memory_slots = 10, .disk_slots = 60, .write_cost = 2, .read_cost = 2}));

  // The slope in one direction, by the gradient and by central differences.
  double by_gradient = 0;
  State there = initial_state(), back = initial_state();
  constexpr double distance = 1e-5;
  for (std::size_t i = 0; i < cells; ++i) {
    const double direction = std::cos(6 * std::numbers::pi * static_cast<double>(i) * dx);
    by_gradient += limited[i] * direction;
    there[i] += distance * direction;
    back[i] -= distance * direction;
  }
  const double by_differences = (misfit_after(there, steps) - misfit_after(back, steps)) / (2 * distance);
  const double error = std::abs(by_gradient - by_differences) / std::abs(by_differences);
  const bool identical = plain == limited;
  std::printf("slope by the adjoint %.12g, by finite differences %.12g: relative difference %.1e\n", by_gradient,
              by_differences, error);
  std::printf("identical to everything remembered: %s\n", identical ? "yes, bit for bit" : "NO");
  return identical && error < 1e-6 ? 0 : 1;
}
