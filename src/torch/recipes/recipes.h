// Recipes: the operators of one pass, each with references to values instead of tensors.
//
// A pass goes from the first operator to the end of backward, when nothing that autograd saved is pending any more.
// Its recipes are written once, in arenas that only grow. When a later pass runs the same operators on the same
// geometry, it follows the same recipes instead of writing new ones; where it leaves them, it takes a copy of what came
// before and goes on from there.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reprise/torch/policy.h"
#include "reprise/trace/trace.h"
#include "torch/libtorch/tensor_view.h"
#include "torch/recipes/operator_table.h"
#include "torch/recipes/settings.h"

namespace reprise::internal {

inline constexpr Id no_value = -1;
inline constexpr Id no_operator = -1;

// One of the devices of a session, in their order; or memory that none of them counts.
using DeviceOrdinal = std::uint8_t;
inline constexpr DeviceOrdinal untracked = 255;

struct Reference {
  Id value = no_value;  // none: an undefined tensor, or one that is overwritten and needs no old contents
  View view;
  bool defined = false;
  bool plain = true;  // false: a tensor that is not a plain one on the CPU; the operator cannot be replayed
};

struct Argument {
  enum class Kind : std::uint8_t {
    constant,
    tensor,
    tensors,
    optional_tensors,
    unknown,  // a tensor that is not a plain one on the CPU: the operator cannot be replayed
  };
  Kind kind = Kind::constant;
  std::uint32_t first = 0;  // into the constants, or the references
  std::uint32_t count = 1;
};

// A storage that an operator writes into.
struct Write {
  std::int16_t argument = 0, element = 0;
  Access access = Access::write;
  Id before = no_value;  // the value it held until then, if it was one
  Bytes bytes = 0;       // of the storage
};

// A value that an operator makes: in a result, or as the next version of a written storage.
struct Output {
  Id value = no_value;
  std::int16_t result = -1, element = 0;
  std::int16_t write = -1;  // index among the operator's writes; -1: a new storage
};

// Where the arenas stood.
struct Marks {
  std::uint32_t arguments = 0, constants = 0, references = 0, writes = 0, outputs = 0;
};

// What an operator is like, wherever in a pass it is and whatever its sizes: hashes of its name alone, of its name
// and those of the operators that made what it reads, and so on. The same in every process.
using StructuralHash = std::array<std::uint32_t, 4>;

struct Recipe {
  const OperatorInfo* info = nullptr;
  Marks start;  // its arguments, writes and outputs begin here and end where the next one's begin
  bool grad_mode = true;
  at::ScalarType default_type = at::kFloat;  // of factories and of whole numbers that become fractions
  Settings settings = {};                    // that it ran with
  const char* why_not_replayable = nullptr;  // why it cannot be replayed; nullptr: it can
  Choice choice = Choice::automatic;         // the policy's
  const std::string* module = nullptr;       // whose parameter it reads; nullptr: none, or not known
  StructuralHash structural_hash = {};
};

struct RecordedValue {
  Bytes bytes = 0;  // as the meter counts them
  Id maker =
      no_operator;        // none: it came from outside, or cannot be recomputed; then it is held while it may be needed
  bool verified = false;  // recomputed once and found to be the same bits
  bool copy_verified = false;         // came back from a tier once and was found to be the same bits
  bool partly_uninitialized = false;  // some of its bytes are never written: it is not compared
  bool must_keep_past_inputs =
      false;                 // what it is made of goes while the program still has it: it is kept, not recomputed
  DeviceOrdinal device = 0;  // that counts its bytes
};

// Structure of arrays: all but `values` are ordered by operator.
struct Recipes {
  std::vector<Recipe> operators;
  std::vector<RecordedValue> values;

  std::vector<Argument> arguments;
  std::vector<c10::IValue> constants;
  std::vector<Reference> references;
  std::vector<Write> writes;
  std::vector<Output> outputs;

  [[nodiscard]] Marks marks() const {
    const auto at = [](const auto& all) { return static_cast<std::uint32_t>(all.size()); };
    return {at(arguments), at(constants), at(references), at(writes), at(outputs)};
  }
  [[nodiscard]] Marks end_of(Id op) const {
    return op + 1 < static_cast<Id>(operators.size()) ? operators[op + 1].start : marks();
  }
  // What belongs to one operator in one of the arenas.
  template <class T>
  [[nodiscard]] std::span<const T> slice(const std::vector<T>& arena, Id op, std::uint32_t Marks::*mark) const {
    const std::size_t first = operators[op].start.*mark;
    const std::size_t last = op + 1 < static_cast<Id>(operators.size()) ? operators[op + 1].start.*mark : arena.size();
    return {arena.data() + first, last - first};
  }
  [[nodiscard]] std::span<const Argument> arguments_of(Id op) const { return slice(arguments, op, &Marks::arguments); }
  [[nodiscard]] std::span<const Write> writes_of(Id op) const { return slice(writes, op, &Marks::writes); }
  [[nodiscard]] std::span<const Output> outputs_of(Id op) const { return slice(outputs, op, &Marks::outputs); }
  [[nodiscard]] std::span<const Reference> references_of(Id op) const {
    return slice(references, op, &Marks::references);
  }

  // Returns what came before this operator, as recipes of their own; with `outputs` also this operator, with that many
  // of its outputs. Values keep their numbers; those that were not met by then are not among them.
  [[nodiscard]] Recipes before(Id op, std::optional<std::size_t> outputs) const;
  // Returns a hash of which operator it is, of which values, and what it makes: the same in a copy of the process, if
  // nothing differs.
  [[nodiscard]] std::uint64_t fingerprint_of(Id op) const;
  // Returns that of an operator that reads the references from `first_reference` on, the last that were added.
  [[nodiscard]] StructuralHash structural_hash_of(const OperatorInfo&, std::uint32_t first_reference) const;
  // Returns the accelerator of the first of them that is on one. None if the CPU has all of them.
  [[nodiscard]] std::optional<c10::Device> accelerator_of(std::uint32_t first_reference) const;
  [[nodiscard]] std::optional<c10::Device> accelerator_of_operator(Id op) const;
  // Marks the operator as not to be replayed, for this reason: what it makes has no maker.
  void mark_not_replayable(Id op, const char* why);

  // Frees memory that it does not need, because nothing will be added.
  void shrink();
  // Returns about what it takes in memory.
  [[nodiscard]] Bytes bytes() const;
};

// Returns whether replaying with one is the same as replaying with the other.
[[nodiscard]] bool same_constant(const c10::IValue&, const c10::IValue&);

// Returns how many operators two lists of recipes have in common from the start.
[[nodiscard]] Id common_operators(const Recipes&, const Recipes&);

}  // namespace reprise::internal
