#include "torch/hooks/compiled.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "torch/evict/writes.h"
#include "torch/memory/arbiter.h"
#include "torch/record/operator_call.h"
#include "torch/session/thread_state.h"
#include "torch/values/recordings.h"

namespace reprise::internal::compiled {
namespace {

std::uint64_t fingerprint_of_default_generator() {
  auto& generator = *at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
  Arbiter::expect_free("a generator is locked");
  const std::scoped_lock lock(generator.mutex_);
  return libtorch::fingerprint(libtorch::state_of(generator));
}

}  // namespace

bool is_watched() {
  return this_thread().source != nullptr;
}

bool may_be_operator() {
  const ThreadState& here = this_thread();
  if (!here.source || here.met_inside) return false;
  return writes::operators_under_way() == 0 || (writes::operators_under_way() == 1 && here.in_compiled_function);
}

// ---- one operator --------------------------------------------------------------------------------------------------

AsOperator::AsOperator() : inside_(std::exchange(writes::operators_under_way(), 0)) {}
AsOperator::~AsOperator() {
  writes::operators_under_way() = inside_;
}

Graph::Graph()
    : outer_(std::exchange(this_thread().in_compiled_graph, true)), random_before_(fingerprint_of_default_generator()) {
  ++writes::operators_under_way();
}

Graph::~Graph() {
  --writes::operators_under_way();
  this_thread().in_compiled_graph = outer_;
}

void Graph::ran() {
  // What was drawn by operators is on the tape. A kernel that asked the generator itself has left it elsewhere.
  const std::uint64_t now = fingerprint_of_default_generator();
  const bool explained =
      now == random_before_ || std::any_of(drawn_.tape().begin(), drawn_.tape().end(),
                                           [&](const draws::Draw& draw) { return draw.after == now; });
  const auto& recording = this_thread().recording;
  if (!explained && recording && recording->call())
    recording->call()->mark_not_replayable("it draws in a way of its own");
}

// ---- opaque --------------------------------------------------------------------------------------------------------

Opaque::Opaque(writes::Written written) : written_(std::move(written)) {
  writes::save_contents(written_);
  ++writes::operators_under_way();
}

Opaque::~Opaque() {
  --writes::operators_under_way();
  writes::take_over(written_);
}

void Opaque::made(const std::vector<at::Tensor>& results, const std::vector<const c10::StorageImpl*>& inputs,
                  const char* why) {
  const ThreadState& here = this_thread();
  if (!here.source) return;
  std::vector<const c10::StorageImpl*> counted = inputs;
  const Arbiter lock;
  for (const at::Tensor& tensor : results) {
    if (!tensor.defined() || !tensor.has_storage()) continue;
    const c10::StorageImpl* const storage = libtorch::storage_of(tensor);
    if (std::find(counted.begin(), counted.end(), storage) != counted.end()) continue;
    counted.push_back(storage);
    here.source->context().counters().kept("torch.compile", why, static_cast<Bytes>(storage->nbytes()));
  }
}

// ---- backward ------------------------------------------------------------------------------------------------------

// What recipes read was seen by the program, and is not the graph's to write into.
GivenAway::GivenAway(const std::vector<at::Tensor>& tensors) {
  const Arbiter lock;
  for (Recording* const one : Recordings::of_process().all()) {
    std::set<Id> given;
    for (const at::Tensor& tensor : tensors) {
      const Id value = one->values().bindings().find(libtorch::storage_of(tensor));
      if (value != no_value && one->values().recomputable(value)) given.insert(value);
    }
    if (given.empty()) continue;
    for (const Reference& reference : one->cursor().recipes().references) given.erase(reference.value);
    const auto recording = one->weak_from_this().lock();
    for (const Id value : given) {
      if (recording) values_.emplace_back(recording, value);
    }
  }
}

GivenAway::~GivenAway() {
  if (values_.empty()) return;
  const Arbiter lock;
  for (auto& [recording, value] : values_) {
    Values& values = recording->values();
    c10::Storage storage = values.bindings().storage(value);
    if (storage && !values.pending().any_of(value)) values.unbind(storage.unsafeGetStorageImpl(), value);
    if (storage) Arbiter::discard(std::move(storage));
  }
  Arbiter::discard_all(std::move(values_));
}

}  // namespace reprise::internal::compiled
