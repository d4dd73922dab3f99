// Stores of arrays of numpy. All work goes on without the interpreter's lock; a rule that is a function of Python's
// takes it.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings_of.h"
#include "dicts.h"
#include "numpy_arrays.h"
#include "reprise/store/store.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

// A rule of the library's.
struct LibraryRule {
  Remember rule;
};

// The rule of the put that goes on in this thread, if it is a function. It belongs to the caller: an object that has a
// store and whose method is its rule can be freed then.
thread_local const py::object* asked_rule = nullptr;

class RuleOfThisPut {
 public:
  explicit RuleOfThisPut(const py::object& rule) : before_(std::exchange(asked_rule, &rule)) {}
  RuleOfThisPut(const RuleOfThisPut&) = delete;
  RuleOfThisPut& operator=(const RuleOfThisPut&) = delete;
  ~RuleOfThisPut() { asked_rule = before_; }

 private:
  const py::object* const before_;  // of a put whose rule puts, too
};

bool ask_rule(const Offer& offer) {
  const py::gil_scoped_acquire interpreter;
  if (!asked_rule || asked_rule->is_none()) return true;  // the rule has become a function since this put began
  const py::object answer = (*asked_rule)(offer.key, offer.number, offer.bytes, offer.cost);
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) throw py::error_already_set();
  return truth == 1;
}

Remember rule_of(const LibraryRule* rule) {
  return rule ? rule->rule : Remember(ask_rule);
}

Evict evict_named(const std::string& name) {
  for (const Evict one : {Evict::oldest, Evict::cheapest, Evict::nothing}) {
    if (name == reprise::name(one)) return one;
  }
  throw BadOption("[store] evict is '" + name + "': it must be oldest, cheapest or nothing");
}

TierKind tier_of(const std::string& name) {
  for (const TierKind one : {TierKind::memory, TierKind::disk}) {
    if (name == reprise::name(one)) return one;
  }
  throw BadOption("[store] tier is '" + name + "': it must be memory or disk");
}

// A store that can be closed while other threads use it: the last of them ends it.
class PythonStore {
 public:
  explicit PythonStore(StoreOptions options) : store_(std::make_shared<Store>(std::move(options))) {}
  ~PythonStore() { close(); }

  // Calls this without the interpreter's lock.
  template <class Work>
  auto use(const Work& work) const {
    std::shared_ptr<Store> store = store_;
    if (!store) throw Error("[store] the store is closed");
    const py::gil_scoped_release no_interpreter;
    const std::shared_ptr<Store> used = std::move(store);  // let go without the lock, too
    return work(*used);
  }
  void close() {
    std::shared_ptr<Store> store = std::move(store_);
    const py::gil_scoped_release no_interpreter;
    store.reset();
  }
  [[nodiscard]] bool closed() const { return !store_; }

 private:
  std::shared_ptr<Store> store_;
};

std::unique_ptr<PythonStore> make_store(std::optional<Bytes> memory, const std::optional<std::filesystem::path>& folder,
                                        std::optional<Bytes> disk_budget, bool keep, const LibraryRule* rule,
                                        const std::string& evict, const std::optional<std::string>& codec) {
  StoreOptions options;
  options.memory = memory.value_or(largest_bytes);
  if (folder) options.disk = DiskTier{*folder, disk_budget.value_or(largest_bytes), keep};
  options.remember = rule_of(rule);
  options.evict = evict_named(evict);
  if (codec) options.codec = &reprise::codec(*codec);
  const py::gil_scoped_release no_interpreter;
  return std::make_unique<PythonStore>(std::move(options));
}

std::string put(const PythonStore& self, const std::string& key, const py::array& array, double cost,
                const std::optional<std::string>& codec, const py::object& rule) {
  const auto element = element_of(array.dtype());
  if (!element || !is_contiguous(array)) throw py::type_error("a store takes contiguous arrays of numbers");
  const ArrayView view = view_of(array, *element);
  const PutOptions options{.cost = cost, .codec = codec ? &reprise::codec(*codec) : nullptr};
  const RuleOfThisPut asked(rule);
  return name(self.use([&](Store& store) { return store.put(key, view, options); }));
}

std::vector<Key> keys_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

void add_questions(py::class_<PythonStore>& stores) {
  stores
      .def(
          "contains",
          [](const PythonStore& self, const std::string& key) {
            return self.use([&](Store& store) { return store.contains(key); });
          },
          py::arg("key"))
      .def("size", [](const PythonStore& self) { return self.use([](Store& store) { return store.size(); }); })
      .def("keys", [](const PythonStore& self) { return self.use([](Store& store) { return store.keys(); }); })
      .def(
          "bytes",
          [](const PythonStore& self, const std::string& tier) {
            return self.use([kind = tier_of(tier)](Store& store) { return store.bytes(kind); });
          },
          py::arg("tier"))
      .def(
          "budget",
          [](const PythonStore& self, const std::string& tier) -> std::optional<Bytes> {
            const Bytes budget = self.use([kind = tier_of(tier)](Store& store) { return store.budget(kind); });
            return budget == largest_bytes ? std::nullopt : std::optional(budget);
          },
          py::arg("tier"))
      .def(
          "describe",
          [](const PythonStore& self, const std::string& key) {
            return dict_of(self.use([&](Store& store) { return store.describe(key); }));
          },
          py::arg("key"))
      .def("statistics",
           [](const PythonStore& self) { return dict_of(self.use([](Store& store) { return store.statistics(); })); })
      .def("reset_statistics",
           [](const PythonStore& self) { self.use([](Store& store) { store.reset_statistics(); }); })
      .def("get_enabled",
           [](const PythonStore& self) { return self.use([](Store& store) { return store.enabled(); }); })
      .def(
          "set_enabled", [](PythonStore& self, bool on) { self.use([&](Store& store) { store.enabled(on); }); },
          py::arg("on"))
      .def(
          "set_remember",
          [](PythonStore& self, const LibraryRule* rule) {
            self.use([&](Store& store) { store.remember(rule_of(rule)); });
          },
          py::arg("rule"))
      .def("close", &PythonStore::close)
      .def("closed", &PythonStore::closed);
}

}  // namespace

void add_stores(py::module_& module) {
  py::class_<LibraryRule>(module, "LibraryRule");
  module.def("remember_all", [] { return LibraryRule{remember::all()}; });
  module.def("remember_none", [] { return LibraryRule{remember::none()}; });
  module.def(
      "remember_every", [](std::uint64_t n) { return LibraryRule{remember::every(n)}; }, py::arg("n"));
  module.def(
      "remember_every_key", [](std::uint64_t n) { return LibraryRule{remember::every_key(n)}; }, py::arg("n"));
  module.def(
      "remember_costly", [](double threshold) { return LibraryRule{remember::costly(threshold)}; },
      py::arg("threshold"));
  module.def("codecs", [] {
    py::dict all;
    for (const Codec* codec : codecs()) all[py::str(std::string(codec->name()))] = std::string(codec->summary());
    return all;
  });

  py::class_<PythonStore> stores(module, "Store");
  stores
      .def(py::init(&make_store), py::arg("memory"), py::arg("folder"), py::arg("disk_budget"), py::arg("keep"),
           py::arg("rule"), py::arg("evict"), py::arg("codec"))
      .def("put", &put, py::arg("key"), py::arg("array"), py::arg("cost"), py::arg("codec"), py::arg("rule"))
      .def(
          "get",
          [](const PythonStore& self, const std::string& key) {
            return numpy_of(self.use([&](Store& store) { return store.get(key); }));
          },
          py::arg("key"))
      .def(
          "take",
          [](const PythonStore& self, const std::string& key) {
            return numpy_of(self.use([&](Store& store) { return store.take(key); }));
          },
          py::arg("key"))
      .def(
          "find",
          [](const PythonStore& self, const std::string& key) -> std::optional<py::array> {
            auto found = self.use([&](Store& store) { return store.find(key); });
            if (!found) return std::nullopt;
            return numpy_of(std::move(*found));
          },
          py::arg("key"))
      .def(
          "erase",
          [](const PythonStore& self, const std::string& key) {
            return self.use([&](Store& store) { return store.erase(key); });
          },
          py::arg("key"))
      .def("clear", [](const PythonStore& self) { self.use([](Store& store) { store.clear(); }); })
      .def(
          "prefetch",
          [](const PythonStore& self, const std::vector<std::string>& keys) {
            self.use([&](Store& store) { store.prefetch(keys_of(keys)); });
          },
          py::arg("keys"))
      .def(
          "offload",
          [](const PythonStore& self, const std::vector<std::string>& keys) {
            self.use([&](Store& store) { store.offload(keys_of(keys)); });
          },
          py::arg("keys"))
      .def("wait", [](const PythonStore& self) { self.use([](Store& store) { store.wait(); }); });
  add_questions(stores);
}

}  // namespace reprise::python
