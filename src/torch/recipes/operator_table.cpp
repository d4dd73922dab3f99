#include "torch/recipes/operator_table.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_map>

#include "torch/libtorch/libtorch.h"
#include "torch/libtorch/per_thread.h"
#include "torch/recipes/uninitialized.h"

namespace reprise::internal {
namespace {

// In-place operators whose result does not depend on the old contents.
bool overwrites_itself(std::string_view name) {
  static const auto& names =
      *new std::set<std::string_view>{"aten::fill_",       "aten::zero_",    "aten::copy_",     "aten::bernoulli_",
                                      "aten::normal_",     "aten::uniform_", "aten::random_",   "aten::exponential_",
                                      "aten::log_normal_", "aten::cauchy_",  "aten::geometric_"};
  return names.count(name) != 0;
}

// Results with contents that are the same whatever the arguments hold.
bool is_factory_with_arguments(std::string_view name) {
  static const auto& names = *new std::set<std::string_view>{"aten::zeros_like", "aten::ones_like", "aten::full_like",
                                                             "aten::new_zeros",  "aten::new_ones",  "aten::new_full"};
  return names.count(name) != 0;
}

// What LibTorch's documentation of torch.use_deterministic_algorithms names for CUDA, among operators of forward: their
// kernels add in an order that varies.
bool adds_in_any_order(std::string_view name) {
  static const auto& names = *new std::set<std::string_view>{"aten::scatter_add",
                                                             "aten::scatter_add_",
                                                             "aten::scatter",
                                                             "aten::scatter_",
                                                             "aten::scatter_reduce",
                                                             "aten::scatter_reduce_",
                                                             "aten::index_add",
                                                             "aten::index_add_",
                                                             "aten::index_copy",
                                                             "aten::index_copy_",
                                                             "aten::index_reduce",
                                                             "aten::index_put",
                                                             "aten::index_put_",
                                                             "aten::put",
                                                             "aten::put_",
                                                             "aten::_index_put_impl_",
                                                             "aten::cumsum",
                                                             "aten::cumsum_",
                                                             "aten::histc",
                                                             "aten::bincount",
                                                             "aten::median",
                                                             "aten::kthvalue",
                                                             "aten::max_unpool2d",
                                                             "aten::max_unpool3d",
                                                             "aten::nll_loss_forward",
                                                             "aten::nll_loss2d_forward"};
  return names.count(name) != 0;
}

// In place, but only on what a tensor says about its storage.
bool changes_only_the_view(const c10::OperatorHandle& handle) {
  return handle.hasTag(at::Tag::inplace_view);
}

bool leaves_contents_undefined(std::string_view name) {
  return name.starts_with("aten::empty") || name.starts_with("aten::new_empty") || name.starts_with("aten::resize") ||
         name.starts_with("aten::_resize_output") || name == "aten::set_" || name == "aten::set";
}

// Returns whether it communicates with other processes, or prepares it: what it gives may never be asked for again.
bool communicates(std::string_view name) {
  return name.starts_with("c10d::") || name.starts_with("_c10d_functional") || name.starts_with("c10d_functional") ||
         name.starts_with("fsdp::") || name.starts_with("symm_mem::");
}

// FNV-1a.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash;
}

bool mentions(const c10::TypePtr& type, std::string_view word) {
  return type->str().find(word) != std::string::npos;
}

void find_statistics(OperatorInfo& info, const std::string& name) {
  const auto& arguments = info.handle.schema().arguments();
  const bool is_of_library = name == "aten::cudnn_batch_norm" || name == "aten::miopen_batch_norm";
  if (name != "aten::native_batch_norm" && name != "aten::_native_batch_norm_legit" &&
      name != "aten::_batch_norm_with_update" && !is_of_library) {
    return;
  }
  for (int i = 0; i < static_cast<int>(arguments.size()); ++i) {
    const std::string& argument = arguments[i].name();
    if (argument == "training") info.training_argument = i;
    if (argument == "running_mean") info.first_statistic = i;
    if (argument == "running_var") info.last_statistic = i;
  }
  info.batch_norm = info.first_statistic >= 0 && info.last_statistic >= 0;
  info.statistics_optional = name == "aten::native_batch_norm" || is_of_library;
}

void find_noise(OperatorInfo& info, const std::string& name) {
  if (!name.starts_with("aten::rrelu_with_noise")) return;
  const auto& arguments = info.handle.schema().arguments();
  for (int i = 0; i < static_cast<int>(arguments.size()); ++i) {
    if (arguments[i].name() == "training") info.training_argument = i;
    if (arguments[i].name() == "noise" && info.access[i] == Access::overwrite) info.noise_argument = i;
  }
}

void find_uninitialized(OperatorInfo& info) {
  const UninitializedParts* const parts = find_uninitialized_parts(info.name);
  if (!parts) return;
  info.uninitialized_results = parts->results;
  if (parts->reads_uninitialized) info.why_not_replayable = "it reads uninitialized memory";
  for (const int argument : parts->arguments) info.access[argument] = Access::write;
}

Access access_of(const c10::Argument& argument, const std::string& name) {
  // Those of process groups write without declaring it, into everything that they do not call an input.
  const bool undeclared = name.starts_with("c10d::") && mentions(argument.type(), "Tensor") &&
                          argument.name().find("input") == std::string::npos;
  if (undeclared) return Access::write;
  if (!argument.alias_info() || !argument.alias_info()->isWrite()) return Access::read;
  const bool noise = name.starts_with("aten::rrelu_with_noise") && argument.name() == "noise";
  return argument.is_out() || overwrites_itself(name) || noise ? Access::overwrite : Access::write;
}

void find_accesses(OperatorInfo& info, const std::string& name) {
  int index = 0;
  for (const c10::Argument& argument : info.handle.schema().arguments()) {
    info.access.push_back(access_of(argument, name));
    info.writes |= info.access.back() != Access::read;
    if (mentions(argument.type(), "Generator")) info.generator_argument = index;
    ++index;
  }
}

bool takes_tensor(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const c10::Argument& argument) { return mentions(argument.type(), "Tensor"); });
}

// Returns true if a result may have contents of its own, and not only those of an argument.
bool makes_contents(const c10::FunctionSchema& schema) {
  const auto& results = schema.returns();
  return std::any_of(results.begin(), results.end(), [](const c10::Argument& result) {
    return mentions(result.type(), "Tensor") && result.alias_info() == nullptr;
  });
}

// One that only exists above the kernels (an operator of the user's that is registered for autograd alone) cannot be
// replayed below autograd, but what it calls can.
OperatorInfo::Kind kind_of(const OperatorInfo& info, const std::string& name) {
  using Kind = OperatorInfo::Kind;
  const c10::OperatorHandle& handle = info.handle;
  const bool composed = handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  if (composed || libtorch::kernels_of(handle).empty()) return Kind::transparent;
  if (communicates(name)) return Kind::opaque;
  if ((!takes_tensor(handle.schema()) && !info.random) || is_factory_with_arguments(name)) return Kind::opaque;
  const bool makes_nothing = !info.writes && !makes_contents(handle.schema());
  return makes_nothing || leaves_contents_undefined(name) || changes_only_the_view(handle) ? Kind::ignored
                                                                                           : Kind::recorded;
}

}  // namespace

OperatorInfo::OperatorInfo(c10::OperatorHandle operator_handle) : handle(std::move(operator_handle)) {
  const c10::FunctionSchema& schema = handle.schema();
  const std::string& base = schema.name();
  name = schema.overload_name().empty() ? base : base + "." + schema.overload_name();
  name_hash = hash_of(name);
  for (const c10::DispatchKey key : c10::autocast_dispatch_keyset) {
    if (handle.hasKernelForDispatchKey(key)) autocast = autocast.add(key);
  }
  find_accesses(*this, base);
  random = handle.hasTag(at::Tag::nondeterministic_seeded) || generator_argument >= 0;
  varies_on_accelerators = adds_in_any_order(base);
  find_statistics(*this, base);
  find_noise(*this, base);
  find_uninitialized(*this);
  kind = kind_of(*this, base);
  if (kind == Kind::recorded && !base.starts_with("aten::") && libtorch::is_python_kernel(handle)) {
    why_not_replayable = "it is a function written in Python, which runs once";
  }
}

bool OperatorInfo::is_training(c10::ArrayRef<const c10::IValue> inputs) const {
  if (training_argument < 0) return batch_norm;
  return inputs[training_argument].isBool() && inputs[training_argument].toBool();
}

OperatorTable& OperatorTable::of_process() {
  static auto& one = *new OperatorTable;
  return one;
}

const OperatorInfo* OperatorTable::find(const char* name) {
  const std::scoped_lock lock(mutex_);
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : found->second;
}

// Called for every operator that goes, under the dispatcher's lock.
class OperatorTable::Listener final : public c10::OpRegistrationListener {
 public:
  explicit Listener(OperatorTable& table) : table_(table) {}
  void onOperatorRegistered(const c10::OperatorHandle&) override {}
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    if (op.hasSchema()) table_.remove(op.schema().name().c_str());
  }

 private:
  OperatorTable& table_;
};

// For the rest of the process, to which the table belongs.
void OperatorTable::listen() {
  static auto& listening = *new std::vector<c10::RegistrationHandleRAII>;
  listening.push_back(c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>(*this)));
}

void OperatorTable::remove(const char* name) {
  const std::scoped_lock lock(mutex_);
  const auto found = all_.find(name);
  if (found == all_.end()) return;
  found->second->gone = true;
  all_.erase(found);
  removals_.fetch_add(1, std::memory_order_release);
}

const OperatorInfo* OperatorTable::add(const char* name, std::unique_ptr<const OperatorInfo> info) {
  const std::scoped_lock lock(mutex_);
  const auto [device, is_new] = all_.try_emplace(name, info.get());
  if (is_new) info.release();
  return device->second;
}

const OperatorInfo& find_operator(const c10::OperatorHandle& handle) {
  const char* const key = handle.schema().name().c_str();
  if (const OperatorInfo* const known = OperatorTable::of_process().find(key)) return *known;
  return *OperatorTable::of_process().add(key, std::make_unique<const OperatorInfo>(handle));
}

const OperatorInfo* find_operator(const at::RecordFunction& call) {
  struct Seen {
    std::unordered_map<const char*, const OperatorInfo*> all;
    std::uint64_t removals = 0;
  };
  auto& [seen_here, removals] = of_thread<Seen>();
  if (const std::uint64_t now = OperatorTable::of_process().removals(); now != removals) {
    seen_here.clear();
    removals = now;
  }
  const char* const key = call.name();
  if (const auto found = seen_here.find(key); found != seen_here.end()) return found->second;
  const OperatorInfo* info = OperatorTable::of_process().find(key);
  if (!info) {
    const auto name = call.operator_name();
    const auto handle = name ? c10::Dispatcher::singleton().findSchema(*name) : std::nullopt;
    if (!handle) return nullptr;  // not remembered: only the addresses of schemas stay what they are
    info = OperatorTable::of_process().add(key, std::make_unique<const OperatorInfo>(*handle));
  }
  return seen_here[key] = info;
}

}  // namespace reprise::internal
