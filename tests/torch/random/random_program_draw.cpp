#include "torch/random/random_program_draw.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace reprise::testing {
namespace {

constexpr std::int64_t largest = 2100;  // elements of a tensor

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

// Not what hides every difference: infinite, or not a number, or on its way there.
bool is_tame(const at::Tensor& tensor) {
  if (tensor.numel() > largest) return false;
  if (!tensor.is_floating_point() || tensor.numel() == 0) return true;
  at::NoGradGuard no_grad;
  return tensor.abs().max().item<double>() < 1e3;  // false if it is not a number
}

bool overlaps_itself(const at::Tensor& tensor) {
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.stride(d) == 0 && tensor.size(d) > 1) return true;
  }
  return false;
}

void remove_unused(Program& program, const std::vector<bool>& used) {
  const auto unused = [&](const Leaf& leaf) { return !used[leaf.tensor]; };
  program.leaves.erase(std::remove_if(program.leaves.begin(), program.leaves.end(), unused), program.leaves.end());
}

void mark_used(const std::vector<Operation>& operations, std::vector<bool>& used) {
  for (const Operation& operation : operations) {
    for (const int input : operation.inputs) used[input] = true;
    mark_used(operation.inside, used);
  }
}

}  // namespace

at::Tensor make_leaf(const Leaf& leaf) {
  std::vector<std::int64_t> sizes = leaf.sizes;
  if (leaf.transposed) std::swap(sizes.front(), sizes.back());
  at::Tensor tensor;
  switch (leaf.content) {
    case Leaf::Content::normal: tensor = torch::randn(sizes, leaf.dtype); break;
    case Leaf::Content::positive: tensor = torch::rand(sizes, leaf.dtype) + 0.5; break;
    case Leaf::Content::index: tensor = torch::randint(leaf.bound, sizes, at::kLong); break;
    case Leaf::Content::mask: tensor = torch::rand(sizes) > 0.5; break;
  }
  if (leaf.transposed) tensor = tensor.transpose(0, -1);
  return tensor.detach().requires_grad_(leaf.gradient);
}

std::string type_of(const at::Tensor& tensor) {
  std::ostringstream out;
  out << (tensor.scalar_type() == at::kFloat ? "" : c10::toString(tensor.scalar_type())) << tensor.sizes();
  return out.str();
}

bool broadcasts(const at::Tensor& x, const at::Tensor& y) {
  for (std::int64_t d = 1; d <= std::min(x.dim(), y.dim()); ++d) {
    if (x.size(-d) != y.size(-d) && x.size(-d) != 1 && y.size(-d) != 1) return false;
  }
  return true;
}

bool broadcasts_into(const at::Tensor& x, const at::Tensor& y) {
  if (x.dim() > y.dim()) return false;
  for (std::int64_t d = 1; d <= x.dim(); ++d) {
    if (x.size(-d) != y.size(-d) && x.size(-d) != 1) return false;
  }
  return true;
}

// ---- what kinds choose with ----------------------------------------------------------------------------------------

std::int64_t Draw::dimension(int tensor) {
  const std::int64_t dimensions = pool_[tensor].dim(), chosen = number(0, dimensions - 1);
  return chance(20) ? chosen - dimensions : chosen;
}

std::optional<int> Draw::pick(const Fits& fits) {
  const auto all = static_cast<std::int64_t>(pool_.size());
  const std::int64_t ago = number(0, all * all - 1);
  const auto start = static_cast<std::int64_t>(std::sqrt(static_cast<double>(ago)));  // the last ones most of all
  for (std::int64_t i = 0; i < all; ++i) {
    const auto candidate = static_cast<int>((start + all - i) % all);
    if (fits(pool_[candidate])) return candidate;
  }
  return std::nullopt;
}

int Draw::parameter(const std::vector<std::int64_t>& sizes, at::ScalarType dtype, bool gradient, Leaf::Content content,
                    std::int64_t bound) {
  const bool shared = chance(70);
  for (const Leaf& leaf : program_.leaves) {
    if (shared && leaf.sizes == sizes && leaf.dtype == dtype && leaf.gradient == gradient && leaf.content == content &&
        leaf.bound == bound) {
      return leaf.tensor;
    }
  }
  add_leaf({.content = content, .sizes = sizes, .dtype = dtype, .gradient = gradient, .bound = bound});
  return program_.leaves.back().tensor;
}

std::optional<int> Draw::target(const Fits& fits) {
  const bool illegal = chance(2);  // and so is mostly the program
  return pick([&](const at::Tensor& t) {
    if (!fits(t) || overlaps_itself(t) || t.numel() == 0) return false;
    return illegal || (saved_.count(storage_of(t)) == 0 && !(t.is_leaf() && t.requires_grad()));
  });
}

bool Draw::may_be_written_into(int input, int target) {
  return !pool_[input].requires_grad() || of_leaves_.count(storage_of(pool_[target])) == 0;
}

// ---- drawing -------------------------------------------------------------------------------------------------------

int Draw::add(const at::Tensor& tensor) {
  pool_.push_back(tensor);
  program_.types.push_back(type_of(tensor));
  return static_cast<int>(pool_.size()) - 1;
}

void Draw::add_leaf(Leaf leaf) {
  const at::Tensor tensor = make_leaf(leaf);
  of_leaves_.insert(storage_of(tensor));
  leaf.tensor = add(tensor);
  program_.leaves.push_back(std::move(leaf));
}

std::vector<std::int64_t> Draw::random_sizes() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = number(0, 30) / 10 + (chance(90) ? 1 : 0); left > 0; --left) {
    sizes.push_back(chance(15) ? 1 : extents_[static_cast<std::size_t>(number(0, 2))]);
  }
  return sizes;
}

std::optional<Operation> Draw::operation() {
  static const int total = [] {
    int all = 0;
    for (const Kind& kind : kinds()) all += kind.weight;
    return all;
  }();
  Operation made;
  std::int64_t place = number(0, total - 1);
  for (const Kind& kind : kinds()) {
    if ((place -= kind.weight) >= 0) continue;
    made.kind = &kind;
    break;
  }
  const std::size_t leaves = program_.leaves.size();
  const bool stays = chance(4);  // even if it throws
  if (!made.kind->choose(*this, made)) return std::nullopt;
  if (leaves < program_.leaves.size() && program_.leaves.size() > 24) return std::nullopt;
  try {
    if (!run(made)) return std::nullopt;
  } catch (const std::exception&) {
    if (!stays) return std::nullopt;
    thrown_ = true;
  }
  return made;
}

bool Draw::run(Operation& made) {
  Tensors inputs;
  for (const int input : made.inputs) inputs.push_back(pool_[input]);
  const Tensors outputs = made.kind->run(inputs, made.numbers);
  if (!std::all_of(outputs.begin(), outputs.end(), is_tame)) return false;
  for (const at::Tensor& output : outputs) made.outputs.push_back(add(output));
  remember_saves(made);
  return true;
}

// Which memory may have been saved for backward. Too much rather than too little.
void Draw::remember_saves(const Operation& made) {
  const auto needs_gradient = [&](int tensor) { return pool_[tensor].requires_grad(); };
  if (!made.kind->saves || std::none_of(made.inputs.begin(), made.inputs.end(), needs_gradient)) return;
  for (const int input : made.inputs) saved_.insert(storage_of(pool_[input]));
  for (const int output : made.outputs) saved_.insert(storage_of(pool_[output]));
}

std::vector<Operation> Draw::operations(int count, int depth) {
  std::vector<Operation> all;
  for (int attempts = 4 * count; count > 0 && attempts > 0 && !thrown_; --attempts) {
    if (checkpoints_ && depth < 2 && chance(9)) {
      const int inside = static_cast<int>(number(2, 8));
      all.emplace_back().inside = operations(inside, depth + 1);
      count -= inside;
    } else if (auto made = operation()) {
      all.push_back(std::move(*made));
      --count;
    }
  }
  return all;
}

// Something to evict, so that budgets are feasible: next to it everything else is small.
void Draw::begin() {
  static const std::vector<const Kind*> layers = [] {
    std::vector<const Kind*> some;
    for (const char* const name : {"mul", "sigmoid", "tanh", "gelu", "silu", "softplus", "sin"}) {
      for (const Kind& kind : kinds()) {
        if (kind.name == name) some.push_back(&kind);
      }
    }
    return some;
  }();
  add_leaf({.sizes = {1}, .gradient = true});
  const int weight = program_.leaves.back().tensor;
  add_leaf({.sizes = {extents_[0], (1 << number(7, 11)) / extents_[0]}});
  int last = program_.leaves.back().tensor;
  for (std::int64_t i = number(4, 10); i > 0; --i) {
    Operation made;
    made.kind = layers[pool_[last].requires_grad() ? number(0, static_cast<std::int64_t>(layers.size()) - 1) : 0];
    made.inputs = {last};
    if (made.kind->name == "mul") made.inputs.push_back(weight);
    run(made);
    last = made.outputs[0];
    program_.operations.push_back(std::move(made));
  }
}

// Losses of what nobody has used, and what is held.
void Draw::end() {
  std::vector<bool> used(pool_.size(), false);
  mark_used(program_.operations, used);
  std::vector<int> open;
  for (int i = 0; i < static_cast<int>(pool_.size()); ++i) {
    if (!used[i] && pool_[i].requires_grad() && pool_[i].numel() > 0) open.push_back(i);
    if (chance(used[i] ? 8 : 30) && !pool_[i].is_leaf()) program_.held.push_back(i);
  }
  const bool at_once = chance(60);  // one loss of everything: the usual step, and the kind that is planned
  if (!at_once && open.size() > 2 && chance(50)) open.resize(open.size() / 2 + 1);
  while (!open.empty()) {
    const auto left = static_cast<std::int64_t>(open.size()), together = at_once ? left : number(1, left);
    Operation made;
    made.kind = &backward_kind();
    made.numbers = {number(0, 3), 0};
    made.inputs.assign(open.end() - together, open.end());
    open.resize(open.size() - static_cast<std::size_t>(together));
    made.numbers[1] = !open.empty() || (!at_once && chance(30));  // the graph is retained
    program_.operations.push_back(std::move(made));
  }
  used.assign(pool_.size(), false);
  mark_used(program_.operations, used);
  remove_unused(program_, used);
}

Program Draw::make() {
  checkpoints_ = chance(60);
  for (int i = 0; i < 3; ++i) extents_.push_back(number(2, 12) + larger_by_);
  for (std::int64_t i = number(2, 5); i > 0; --i) {
    Leaf leaf;
    leaf.sizes = random_sizes();
    leaf.dtype = chance(12) ? at::kDouble : at::kFloat;
    leaf.gradient = i == 1 || chance(60);
    leaf.transposed = leaf.sizes.size() > 1 && chance(15);
    add_leaf(leaf);
  }
  if (chance(50)) add_leaf({.sizes = {2, number(1, 4), number(4, 8), number(4, 8)}, .gradient = chance(50)});
  if (chance(60)) add_leaf({.content = Leaf::Content::mask, .sizes = random_sizes(), .dtype = at::kBool});
  begin();
  for (Operation& made : operations(static_cast<int>(std::min({number(5, 60), number(5, 60), number(5, 60)})), 0)) {
    program_.operations.push_back(std::move(made));
  }
  program_.accumulates = chance(20);
  program_.updates = chance(30);
  program_.drops_inside = chance(80);
  if (!thrown_) end();
  return std::move(program_);
}

Program make_program(std::uint64_t seed, std::int64_t larger_by) {
  torch::manual_seed(seed);
  Program program = Draw(seed, larger_by).make();
  program.seed = seed;
  return program;
}

}  // namespace reprise::testing
