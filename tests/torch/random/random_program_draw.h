// Drawing a program: what the kinds of operators choose their inputs and numbers with.
#pragma once

#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "torch/random/random_program.h"

namespace reprise::testing {

class Draw {
 public:
  explicit Draw(std::uint64_t seed, std::int64_t larger_by = 0) : random_(seed), larger_by_(larger_by) {}

  // ---- numbers ----
  std::int64_t number(std::int64_t lowest, std::int64_t highest) {
    return lowest + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(highest - lowest + 1));
  }
  bool chance(int percent) { return number(1, 100) <= percent; }
  // A dimension of the tensor, now and then counted from the end.
  std::int64_t dimension(int tensor);

  // ---- tensors ----
  using Fits = std::function<bool(const at::Tensor&)>;
  // One that fits, rather a new one than an old one.
  std::optional<int> pick(const Fits&);
  // One of these sizes to learn: one that is there, or a new leaf.
  int parameter(const std::vector<std::int64_t>& sizes, at::ScalarType, bool gradient = true,
                Leaf::Content = Leaf::Content::normal, std::int64_t bound = 1);
  // One that may be written in place.
  std::optional<int> target(const Fits&);
  // Whether this input may be written into that one.
  bool may_be_written_into(int input, int target);
  [[nodiscard]] const at::Tensor& tensor(int number) const { return pool_[number]; }
  [[nodiscard]] at::Tensor& tensor(int number) { return pool_[number]; }

  [[nodiscard]] Program make();

 private:
  using Storages = std::set<const c10::StorageImpl*>;
  int add(const at::Tensor&);
  void add_leaf(Leaf);
  std::vector<std::int64_t> random_sizes();
  std::vector<Operation> operations(int count, int depth);
  std::optional<Operation> operation();
  // Gives it its outputs; false: they are too large. Throws what LibTorch does.
  bool run(Operation&);
  void remember_saves(const Operation&);
  void begin();
  void end();

  std::mt19937_64 random_;
  const std::int64_t larger_by_;
  Program program_;
  Tensors pool_;
  Storages saved_, of_leaves_;
  bool checkpoints_ = true;
  std::vector<std::int64_t> extents_;
  bool thrown_ = false;  // the program is one that throws, here
};

// A tensor of the leaf's kind, from the generator.
at::Tensor make_leaf(const Leaf&);
std::string type_of(const at::Tensor&);

// Conditions on tensors.
inline bool is_real(const at::Tensor& x) {
  return x.is_floating_point();
}
inline bool is_index(const at::Tensor& x) {
  return x.scalar_type() == at::kLong;
}
inline bool is_mask(const at::Tensor& x) {
  return x.scalar_type() == at::kBool;
}
bool broadcasts(const at::Tensor&, const at::Tensor&);
// Into the second one's sizes.
bool broadcasts_into(const at::Tensor&, const at::Tensor&);

}  // namespace reprise::testing
