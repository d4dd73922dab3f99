// Random programs: a few to sixty operators on a pool of small tensors, with losses and backward, made from a seed.
//
// A program is data: it can be said in words, run any number of times, and made smaller when it fails. Making one runs
// it, plainly, operator by operator: what LibTorch refuses or what grows without bound is left out again.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reprise/torch/checkpoint.h"
#include "torch/traps/trap.h"

namespace reprise::testing {

class Draw;
struct Operation;
using Numbers = std::vector<std::int64_t>;

// A kind of operator, one of `kinds()`.
struct Kind {
  std::string name;
  int weight = 1;  // how often, compared with the others
  // Whether autograd may save what it reads or makes: writing there in place is then mostly illegal.
  bool saves = true;
  bool in_place = false;                          // on its first input; it makes nothing
  std::function<bool(Draw&, Operation&)> choose;  // inputs and numbers; false: nothing fits
  std::function<Tensors(const Tensors& inputs, const Numbers&)> run;
};

// The table: random_program_kinds.cpp.
const std::vector<Kind>& kinds();
// To end programs with.
const Kind& backward_kind();

struct Operation {
  const Kind* kind = nullptr;  // nullptr: checkpoint() around the operations inside
  std::vector<int> inputs, outputs;
  Numbers numbers;  // sizes, dimensions, hundredths: what the kind makes of them
  std::vector<Operation> inside;
};

// A tensor that is there before the program.
struct Leaf {
  enum class Content { normal, positive, index, mask };
  int tensor = 0;  // its number in the pool
  Content content = Content::normal;
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype = at::kFloat;
  bool gradient = false;
  bool transposed = false;  // in memory
  std::int64_t bound = 1;   // of an index
};

struct Program {
  std::uint64_t seed = 0;
  std::vector<Leaf> leaves;
  std::vector<Operation> operations;
  std::vector<int> held;           // to the end, and compared; every other tensor goes after its last use
  std::vector<std::string> types;  // of the pool's tensors, when the program was made
  bool accumulates = false;        // gradients of the steps, instead of starting anew
  bool updates = false;            // the leaves by their gradients, at the end of each step
  bool drops_inside = true;        // lets go of everything before the step ends, and not after
};

// `larger_by`: extents are so much larger, and else it is the same program, as far as LibTorch takes it at these sizes.
[[nodiscard]] Program make_program(std::uint64_t seed, std::int64_t larger_by = 0);
[[nodiscard]] std::string in_words(const Program&);

// Whether an operation is of this kind.
[[nodiscard]] bool uses(const Program&, const std::string& kind);

// The operations counted with those inside of others, and a program without the one of this number: its result is
// replaced by one of its inputs of the same type, or those that need it go too. checkpoint() leaves its inside behind.
[[nodiscard]] int size(const Program&);
[[nodiscard]] Program without(const Program&, int number);
// The same program if the leaf is used; others have other contents then.
[[nodiscard]] Program without_leaf(const Program&, std::size_t number);

// ---- running them ----

// Of a program, with leaves from the generator.
class Machine {
 public:
  // checkpoints: those of the program are calls of reprise::checkpoint(), or else only of the function.
  Machine(const Program&, bool checkpoints);
  // Once from the start to the end; may be called again.
  void step();
  // Lets go of the tensors of the last step.
  void drop();
  // What is held of the last step, the leaves and their gradients.
  [[nodiscard]] Tensors results() const;

 private:
  void run(const std::vector<Operation>&);
  void run(const Operation&);

  const Program& program_;
  const bool checkpoints_;
  CheckpointSite site_;  // one for all: those of different functions take turns
  Tensors leaves_, pool_, results_;
  std::vector<int> uses_, used_;  // by tensor: in the program, and so far
};

}  // namespace reprise::testing
