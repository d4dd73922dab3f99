// Compiled code: what torch.compile makes of a graph of operators.
//
// Its kernels write through raw pointers, into buffers that are used again in place, and operators of LibTorch's stand
// between them: no recipe of any of these would hold. So a graph is taken as a whole, in one of two ways.
//
// A graph that depends on nothing but its inputs and the random numbers it draws runs as *one operator* of the
// dispatcher, and that one is recorded: to replay it is to run the graph again, on the tape of what it drew. Whether it
// is such a graph is known in part before it runs (it changes no input) and in part afterwards: Graph sees what it
// does.
//
// Every other graph is *opaque*: it and everything that it calls are ignored, and what it returns comes from outside.
//
// Whoever binds the language in which graphs are called (Python) makes these around its calls.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "torch/evict/writes.h"
#include "torch/recipes/random_tape.h"
#include "torch/values/recording.h"

namespace reprise::internal::compiled {

// Returns whether this thread records. If not, compiled code runs as it always does.
[[nodiscard]] bool is_watched();

// Returns whether a graph that is called now may run as one operator: nothing but itself is under way.
[[nodiscard]] bool may_be_operator();

// While it exists, an operator that is called is recorded although it is called inside of the function that autograd
// knows compiled code by.
class AsOperator {
 public:
  AsOperator();
  ~AsOperator();
  AsOperator(const AsOperator&) = delete;
  AsOperator& operator=(const AsOperator&) = delete;

 private:
  const int inside_;
};

// A graph that runs as one operator. What it calls is not recorded, but looked at: it may be something that must not
// happen twice.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  // Looks at what it has drawn: it has run, without an error.
  void ran();

 private:
  const bool outer_;
  const std::uint64_t random_before_;
  draws::Recorder drawn_;
};

// A graph that is opaque, and writes into these tensors.
class Opaque {
 public:
  explicit Opaque(writes::Written written);
  ~Opaque();
  Opaque(const Opaque&) = delete;
  Opaque& operator=(const Opaque&) = delete;
  // Counts the tensors that it has made from these storages, and that are kept, for this reason.
  void made(const std::vector<at::Tensor>& results, const std::vector<const c10::StorageImpl*>& inputs,
            const char* why);

 private:
  const writes::Written written_;
};

// Tensors that a graph of backward is given to do with as it likes: it may leave other contents in their memory, which
// no counter sees. Afterwards that memory, if it is still there, has none of the values that it had.
class GivenAway {
 public:
  explicit GivenAway(const std::vector<at::Tensor>&);
  ~GivenAway();
  GivenAway(const GivenAway&) = delete;
  GivenAway& operator=(const GivenAway&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<Recording>, Id>> values_;
};

}  // namespace reprise::internal::compiled
