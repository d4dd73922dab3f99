// The adjoint of a solver that uses PETSc, with its states on disk.
//
//   petsc_adjoint [STEPS]      or  mpirun -n 2 petsc_adjoint
//
// The Allen-Cahn equation, u_t = k (u_xx + u_yy) + u - u^3 on a square, on a grid of PETSc's (DMDA): in each step the
// reaction is explicit, and the diffusion is implicit, solved by conjugate gradients (KSP). The misfit at the end is
// differentiated with respect to the initial state. States are PETSc's vectors; StateTraits tell the chain how to copy
// them and see them as arrays. Revolve chooses the steps that are remembered, and they are on disk. The gradient is
// compared with the one of all states remembered, and with finite differences.
#include <petscdmda.h>
#include <petscksp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/chain/chain.h"

namespace {

constexpr PetscInt cells = 48;
constexpr double conductivity = 2e-3, dt = 0.02;

void must(PetscErrorCode code) {
  if (code != 0) PETSCABORT(PETSC_COMM_WORLD, code);
}

// A vector of PETSc's, or this rank's part of it.
class Field {
 public:
  Field() = default;
  explicit Field(DM grid) { must(DMCreateGlobalVector(grid, &vector_)); }
  Field(Field&& other) noexcept : vector_(std::exchange(other.vector_, nullptr)) {}
  Field& operator=(Field&& other) noexcept {
    std::swap(vector_, other.vector_);
    return *this;
  }
  ~Field() { must(VecDestroy(&vector_)); }

  [[nodiscard]] Vec vector() const { return vector_; }
  [[nodiscard]] Field copy() const {
    Field result;
    must(VecDuplicate(vector_, &result.vector_));
    must(VecCopy(vector_, result.vector_));
    return result;
  }
  // The numbers of this rank, which stay where they are as long as the vector does.
  [[nodiscard]] std::span<const double> numbers() const {
    PetscInt size = 0;
    const double* first = nullptr;
    must(VecGetLocalSize(vector_, &size));
    must(VecGetArrayRead(vector_, &first));
    const std::span<const double> numbers(first, static_cast<std::size_t>(size));
    must(VecRestoreArrayRead(vector_, &first));
    return numbers;
  }
  // Calls set(number, position) for each number of this rank.
  template <class Set>
  void for_each(const Set& set) {
    PetscInt size = 0;
    double* first = nullptr;
    must(VecGetLocalSize(vector_, &size));
    must(VecGetArray(vector_, &first));
    for (PetscInt i = 0; i < size; ++i) set(first[i], static_cast<std::size_t>(i));
    must(VecRestoreArray(vector_, &first));
  }

 private:
  Vec vector_ = nullptr;
};

DM grid = nullptr;

}  // namespace

template <>
struct reprise::StateTraits<Field> {
  static Bytes bytes(const Field& field) { return static_cast<Bytes>(field.numbers().size_bytes()); }
  static Field clone(const Field& field) { return field.copy(); }
  static void copy(const Field& from, Field& to) { must(VecCopy(from.vector(), to.vector())); }
  static ArrayView encode(const Field& field) { return field.numbers(); }
  static Field decode(const Array& array) {
    Field field(grid);
    const auto numbers = array.as<double>();
    field.for_each([&](double& number, std::size_t i) { number = numbers[i]; });
    return field;
  }
  static constexpr bool comparable = true;
};

namespace {

class Solver {
 public:
  Solver() {
    must(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, cells, cells,
                      PETSC_DECIDE, PETSC_DECIDE, 1, 1, nullptr, nullptr, &grid));
    must(DMSetUp(grid));
    must(DMCreateMatrix(grid, &matrix_));
    fill();
    must(KSPCreate(PETSC_COMM_WORLD, &solver_));
    must(KSPSetType(solver_, KSPCG));
    must(KSPSetOperators(solver_, matrix_, matrix_));
    must(KSPSetTolerances(solver_, 1e-13, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    right_side_ = Field(grid);
  }
  ~Solver() {
    right_side_ = Field();
    must(KSPDestroy(&solver_));
    must(MatDestroy(&matrix_));
    must(DMDestroy(&grid));
  }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // (1 - dt k Laplace) next = u + dt (u - u^3)
  void forward(const Field& u, Field& next) {
    const auto before = u.numbers();
    right_side_.for_each(
        [&](double& x, std::size_t i) { x = before[i] + dt * (before[i] - before[i] * before[i] * before[i]); });
    must(KSPSolve(solver_, right_side_.vector(), next.vector()));
  }
  // The matrix is its own transpose.
  Field backward(const Field& u, const Field& gradient) {
    Field result(grid);
    must(KSPSolve(solver_, gradient.vector(), result.vector()));
    const auto before = u.numbers();
    result.for_each([&](double& x, std::size_t i) { x *= 1 + dt * (1 - 3 * before[i] * before[i]); });
    return result;
  }

 private:
  void fill() {
    DMDALocalInfo part;
    must(DMDAGetLocalInfo(grid, &part));
    const double flow = dt * conductivity * cells * cells;
    for (PetscInt j = part.ys; j < part.ys + part.ym; ++j) {
      for (PetscInt i = part.xs; i < part.xs + part.xm; ++i) {
        MatStencil row{};
        row.i = i;
        row.j = j;
        double diagonal = 1;
        for (const auto& [di, dj] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
          MatStencil column = row;
          column.i += di;
          column.j += dj;
          if (column.i < 0 || column.i >= cells || column.j < 0 || column.j >= cells) continue;  // nothing flows out
          diagonal += flow;
          const double value = -flow;
          must(MatSetValuesStencil(matrix_, 1, &row, 1, &column, &value, INSERT_VALUES));
        }
        must(MatSetValuesStencil(matrix_, 1, &row, 1, &row, &diagonal, INSERT_VALUES));
      }
    }
    must(MatAssemblyBegin(matrix_, MAT_FINAL_ASSEMBLY));
    must(MatAssemblyEnd(matrix_, MAT_FINAL_ASSEMBLY));
  }

  Mat matrix_ = nullptr;
  KSP solver_ = nullptr;
  Field right_side_;
};

// Some hills, moved by `distance` in some direction. The numbers do not depend on how many ranks there are.
double direction(PetscInt i, PetscInt j) {
  return std::cos(0.3 * static_cast<double>(i)) * std::sin(0.2 * static_cast<double>(j));
}
template <class Use>
void for_each_cell(const Use& use) {
  DMDALocalInfo part;
  must(DMDAGetLocalInfo(grid, &part));
  std::size_t k = 0;
  for (PetscInt j = part.ys; j < part.ys + part.ym; ++j) {
    for (PetscInt i = part.xs; i < part.xs + part.xm; ++i) use(k++, i, j);
  }
}
Field initial_state(double distance = 0) {
  Field field(grid);
  std::vector<double> numbers(field.numbers().size());
  for_each_cell([&](std::size_t k, PetscInt i, PetscInt j) {
    numbers[k] = 0.8 * std::sin(0.4 * static_cast<double>(i)) * std::cos(0.3 * static_cast<double>(j)) +
                 distance * direction(i, j);
  });
  field.for_each([&](double& x, std::size_t k) { x = numbers[k]; });
  return field;
}

double half_square(const Field& u) {
  double product = 0;
  must(VecDot(u.vector(), u.vector(), &product));
  return product / 2;
}

bool same_bits(const Field& one, const Field& other) {
  const auto a = one.numbers(), b = other.numbers();
  int same = std::equal(a.begin(), a.end(), b.begin(), b.end()), all = 0;
  MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD);
  return all != 0;
}

int run(int steps) {
  Solver solver;
  reprise::Chain<Field> chain(
      steps, [&](int, const Field& u, Field& next) { solver.forward(u, next); },
      [&](int, const Field& u, const Field& gradient) { return solver.backward(u, gradient); });

  // The misfit is half the square of the last state, whose gradient is that state.
  const auto gradient_with = [&](const reprise::SchedulePointer& schedule) {
    chain.schedule(schedule);
    Field gradient = chain.backward(chain.forward(initial_state()));
    const reprise::ChainStatistics s = chain.statistics();
    must(PetscPrintf(PETSC_COMM_WORLD, "%-60s %9lld bytes in memory, %9lld on disk, %llu calls of forward\n",
                     schedule->text().substr(0, 60).c_str(), static_cast<long long>(s.peak_stored),
                     static_cast<long long>(s.peak_disk), static_cast<unsigned long long>(s.forward_calls)));
    return gradient;
  };
  const Field plain = gradient_with(reprise::schedule::everything());
  // Every rank has a folder of its own inside this one, and the same schedule. Others may be using it as well, but only
  // this user can read the files.
  chain.disk({.folder = std::filesystem::temp_directory_path()});
  const Field limited = gradient_with(reprise::schedule::memory_and_disk({.memory_slots = 0, .disk_slots = 12}));

  Field towards(grid);
  std::vector<double> numbers(towards.numbers().size());
  for_each_cell([&](std::size_t k, PetscInt i, PetscInt j) { numbers[k] = direction(i, j); });
  towards.for_each([&](double& x, std::size_t k) { x = numbers[k]; });
  double by_gradient = 0;
  must(VecDot(limited.vector(), towards.vector(), &by_gradient));
  const auto misfit_from = [&](double distance) {
    Field u = initial_state(distance), next(grid);
    for (int k = 0; k < steps; ++k) {
      solver.forward(u, next);
      std::swap(u, next);
    }
    return half_square(u);
  };
  constexpr double distance = 1e-5;
  const double by_differences = (misfit_from(distance) - misfit_from(-distance)) / (2 * distance);
  const double error = std::abs(by_gradient - by_differences) / std::abs(by_differences);
  const bool same = same_bits(plain, limited);
  must(PetscPrintf(PETSC_COMM_WORLD,
                   "slope by the adjoint %.12g, by finite differences %.12g: relative difference %.1e\n"
                   "identical to everything remembered: %s\n",
                   by_gradient, by_differences, error, same ? "yes, bit for bit" : "NO"));
  return same && error < 1e-6 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  must(PetscInitialize(&argc, &argv, nullptr, nullptr));
  const int code = run(argc > 1 ? std::atoi(argv[1]) : 150);
  must(PetscFinalize());
  return code;
}
