#include "torch/random/random_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "torch/random/random_program_draw.h"

namespace reprise::testing {
namespace {

void write_tensors(std::ostream& out, const Program& program, const std::vector<int>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    out << (i ? ", " : "") << "t" << tensors[i] << ":" << program.types[tensors[i]];
  }
}

void write(std::ostream& out, const Program& program, const std::vector<Operation>& operations, int depth) {
  for (const Operation& operation : operations) {
    out << std::string(2 * depth, ' ');
    if (!operation.kind) {
      out << "checkpoint {\n";
      write(out, program, operation.inside, depth + 1);
      out << std::string(2 * depth, ' ') << "}\n";
      continue;
    }
    write_tensors(out, program, operation.outputs);
    out << (operation.outputs.empty() ? "" : " = ") << operation.kind->name << "(";
    write_tensors(out, program, operation.inputs);
    for (std::size_t i = 0; i < operation.numbers.size(); ++i) out << (i ? ", " : "; ") << operation.numbers[i];
    out << ")\n";
  }
}

int count(const std::vector<Operation>& operations) {
  int all = 0;
  for (const Operation& operation : operations) all += 1 + count(operation.inside);
  return all;
}

void count_uses(const std::vector<Operation>& operations, std::vector<int>& uses) {
  for (const Operation& operation : operations) {
    for (const int input : operation.inputs) ++uses[input];
    count_uses(operation.inside, uses);
  }
}

bool uses(const std::vector<Operation>& operations, const std::string& kind) {
  return std::any_of(operations.begin(), operations.end(), [&](const Operation& operation) {
    return operation.kind ? operation.kind->name == kind : uses(operation.inside, kind);
  });
}

// Takes one operation out of a program.
class Removal {
 public:
  Removal(const Program& program, int number) : program_(program), left_(number) {}

  std::vector<Operation> of(const std::vector<Operation>& operations) {
    std::vector<Operation> rest;
    for (Operation operation : operations) {
      const bool removed = left_-- == 0;
      if (!operation.kind) {
        operation.inside = of(operation.inside);
        if (!removed) {
          rest.push_back(std::move(operation));
        } else {
          rest.insert(rest.end(), operation.inside.begin(), operation.inside.end());
        }
        continue;
      }
      if (removed || !keep(operation)) {
        replace(operation);
      } else {
        rest.push_back(std::move(operation));
      }
    }
    return rest;
  }

 private:
  bool keep(Operation& operation) {
    auto& inputs = operation.inputs;
    for (int& input : inputs) {
      const auto found = instead_.find(input);
      if (found != instead_.end()) input = found->second;
    }
    const auto gone = [&](int input) { return gone_.count(input) > 0; };
    if (operation.kind->name == "backward")
      inputs.erase(std::remove_if(inputs.begin(), inputs.end(), gone), inputs.end());
    return !inputs.empty() && std::none_of(inputs.begin(), inputs.end(), gone);
  }

  void replace(const Operation& operation) {
    for (const int output : operation.outputs) {
      gone_.insert(output);
      for (const int input : operation.inputs) {
        if (gone_.count(input) == 0 && program_.types[input] == program_.types[output]) {
          instead_[output] = input;
          gone_.erase(output);
        }
      }
    }
  }

  const Program& program_;
  int left_;
  std::map<int, int> instead_;
  std::set<int> gone_;
};

}  // namespace

std::string in_words(const Program& program) {
  std::ostringstream out;
  for (const Leaf& leaf : program.leaves) {
    static const char* const contents[] = {"normal", "positive", "index", "mask"};
    out << "t" << leaf.tensor << ":" << program.types[leaf.tensor] << " = " << contents[static_cast<int>(leaf.content)]
        << " leaf";
    if (leaf.content == Leaf::Content::index) out << " below " << leaf.bound;
    out << (leaf.gradient ? ", requires gradient" : "") << (leaf.transposed ? ", transposed in memory" : "") << "\n";
  }
  write(out, program, program.operations, 0);
  out << "held:";
  for (const int tensor : program.held) out << " t" << tensor;
  out << (program.accumulates ? "; gradients accumulate" : "") << (program.updates ? "; leaves are updated" : "")
      << (program.drops_inside ? "" : "; the graph outlives the step") << "\n";
  return out.str();
}

bool uses(const Program& program, const std::string& kind) {
  return uses(program.operations, kind);
}

int size(const Program& program) {
  return count(program.operations);
}

Program without(const Program& program, int number) {
  Program smaller = program;
  smaller.operations = Removal(program, number).of(program.operations);
  return smaller;
}

Program without_leaf(const Program& program, std::size_t number) {
  std::vector<int> uses(program.types.size());
  count_uses(program.operations, uses);
  Program smaller = program;
  if (uses[program.leaves[number].tensor] == 0) {
    smaller.leaves.erase(smaller.leaves.begin() + static_cast<std::ptrdiff_t>(number));
  }
  return smaller;
}

// ---- running them --------------------------------------------------------------------------------------------------

Machine::Machine(const Program& program, bool checkpoints)
    : program_(program), checkpoints_(checkpoints), uses_(program.types.size()) {
  for (const Leaf& leaf : program.leaves) leaves_.push_back(make_leaf(leaf));
  count_uses(program.operations, uses_);
  for (const int tensor : program.held) ++uses_[tensor];
}

void Machine::step() {
  drop();
  pool_.resize(program_.types.size());
  used_.assign(program_.types.size(), 0);
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    pool_[program_.leaves[i].tensor] = leaves_[i];
    if (!program_.accumulates) leaves_[i].mutable_grad() = at::Tensor();
  }
  run(program_.operations);
  if (program_.updates) {
    at::NoGradGuard no_grad;
    for (at::Tensor& leaf : leaves_) {
      if (leaf.is_leaf() && leaf.grad().defined()) leaf.sub_(leaf.grad(), 0.01);
    }
  }
  for (const int tensor : program_.held) results_.push_back(pool_[tensor]);
  if (program_.drops_inside) {
    pool_.clear();
    for (at::Tensor& result : results_) {
      if (result.defined()) result = result.detach();
    }
  }
}

void Machine::drop() {
  pool_.clear();
  results_.clear();
}

Tensors Machine::results() const {
  Tensors all = results_;
  for (const at::Tensor& leaf : leaves_) {
    all.push_back(leaf);
    all.push_back(leaf.grad());
  }
  return all;
}

void Machine::run(const std::vector<Operation>& operations) {
  for (const Operation& operation : operations) {
    if (operation.kind) {
      run(operation);
    } else if (checkpoints_) {
      const CheckpointRegion region(site_);
      run(operation.inside);
    } else {
      run(operation.inside);
    }
  }
}

void Machine::run(const Operation& operation) {
  {
    Tensors inputs;
    for (const int input : operation.inputs) inputs.push_back(pool_[input]);
    Tensors outputs = operation.kind->run(inputs, operation.numbers);
    for (std::size_t i = 0; i < std::min(outputs.size(), operation.outputs.size()); ++i) {
      pool_[operation.outputs[i]] = std::move(outputs[i]);
    }
  }
  for (const int input : operation.inputs) {
    if (++used_[input] == uses_[input]) pool_[input] = at::Tensor();
  }
  for (const int output : operation.outputs) {
    if (uses_[output] == 0) pool_[output] = at::Tensor();
  }
}

}  // namespace reprise::testing
