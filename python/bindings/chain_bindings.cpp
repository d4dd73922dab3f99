// Chains whose closures are Python's. The chain runs without the interpreter's lock; see python_states.h.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "bindings_of.h"
#include "dicts.h"
#include "fields.h"
#include "interruptible.h"
#include "python_states.h"
#include "reprise/chain/any_chain.h"
#include "shared_schedule.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

// A loop of the caller's: the number of its pass.
struct LoopPass {
  std::uint64_t number = 0;
};

template <class Work>
auto without_interpreter(const Work& work) {
  const py::gil_scoped_release no_interpreter;
  return work();
}

class PythonChain final : public AnyChain {
 public:
  PythonChain(ChainLayers layers, ForwardKind kind, bool tapes, bool backward)
      : AnyChain(std::move(layers), tapes, std::make_unique<PythonStates>(kind, tapes, backward)) {
    AnyChain::observer([this](const ChainProgress& progress) { report(progress); });
  }

  // ---- calls: none while the chain runs ----

  class Running {
   public:
    Running(PythonChain& chain, const Functions* functions) : chain_(chain) {
      if (chain.runner_ != std::thread::id()) {
        throw ChainError(
            "[chain] the chain is running: a closure or another thread cannot use it meanwhile. Another chain can be "
            "run inside of a closure");
      }
      chain.runner_ = std::this_thread::get_id();
      chain.held().functions(functions);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
      chain_.held().call_over();
      chain_.runner_ = {};
    }

   private:
    PythonChain& chain_;
  };
  // A question, which a closure may ask, too.
  const PythonChain& asked() const {
    if (runner_ != std::thread::id() && runner_ != std::this_thread::get_id()) {
      throw ChainError("[chain] the chain is running on another thread");
    }
    return *this;
  }

  template <class Change>
  auto change(const Change& made) {
    const Running running(*this, nullptr);
    return without_interpreter(made);
  }

  // ---- passes ----

  py::object forward(const Functions& functions, py::object input, Id first, bool copy) {
    const Running running(*this, &functions);
    held().offer(std::move(input), copy);
    without_interpreter([&] { begin_forward(first); });
    const Id slot = held().put_offered();
    return held().take(without_interpreter([&] { return run_forward(slot); }));
  }
  py::object forward_until(const Functions& functions, py::object input, const py::function& done, bool copy) {
    const Running running(*this, &functions);
    held().offer(std::move(input), copy);
    without_interpreter([&] { begin_forward_until(); });
    const Id slot = held().put_offered();
    const auto is_done = [&](Id position, Id state) {
      const py::gil_scoped_acquire interpreter;
      return py::bool_(py::object(done(position, held().shown(state)))).cast<bool>();
    };
    return held().take(without_interpreter([&] { return run_forward_until(slot, is_done); }));
  }
  py::object backward(const Functions& functions, py::object gradient) {
    const Running running(*this, &functions);
    without_interpreter([&] { begin_backward(); });
    held().work_on(std::move(gradient));
    without_interpreter([&] { run_backward(); });
    return held().take_gradient();
  }
  py::object loop_forward(const Functions& functions, LoopPass& pass, py::object input, std::optional<double> cost) {
    const Running running(*this, &functions);
    held().lend(std::move(input));
    return held().take(without_interpreter([&] { return run_layer_forward(pass.number, cost); }));
  }
  py::object loop_backward(const Functions& functions, LoopPass& pass, py::object gradient) {
    const Running running(*this, &functions);
    without_interpreter([&] { begin_layer_backward(pass.number); });
    held().work_on(std::move(gradient));
    without_interpreter([&] { run_layer_backward(pass.number); });
    return held().take_gradient();
  }
  void measure(const Functions& functions, py::object input) {
    const Running running(*this, &functions);
    held().lend(std::move(input));
    without_interpreter([&] { measure_layers(); });
  }
  void give_back(py::object state) {
    const Running running(*this, nullptr);
    held().give_back(std::move(state));
  }

  // ---- states by hand: of the input at position -1 ----

  void save(Id position, py::object state, bool copy) {
    const Running running(*this, nullptr);
    if (position != -1) require_layer(position);
    held().offer(std::move(state), copy);
    const Id slot = held().put_offered();
    without_interpreter([&] { save_state(position + 1, slot); });
  }
  py::object state(Id position) {
    const Running running(*this, nullptr);
    return held().take(without_interpreter([&] { return copy_state(position); }));
  }
  py::object recompute(const Functions& functions, Id position) {
    const Running running(*this, &functions);
    return held().take(without_interpreter([&] { return recompute_state(position); }));
  }

  // ---- settings ----

  void set_codec(const std::string& name) {
    const Codec& codec = codec_of_fields(reprise::codec(name));
    change([&] { use_codec(codec); });
  }
  [[nodiscard]] std::optional<std::string> get_codec() const {
    const Codec* const codec = asked().used_codec();
    return codec ? std::optional(std::string(codec_inside(*codec).name())) : std::nullopt;
  }
  void set_disk(const std::filesystem::path& folder, std::optional<Bytes> budget, bool keep,
                std::optional<Bytes> transit) {
    const DiskTier tier{.folder = folder, .budget = budget.value_or(largest_bytes), .keep = keep};
    change([&] { use_disk(tier, transit); });
  }
  [[nodiscard]] std::optional<std::filesystem::path> get_disk() const {
    const auto& disk = asked().used_disk();
    return disk ? std::optional(disk->folder) : std::nullopt;
  }
  py::tuple resume(std::uint64_t fingerprint) {
    const ChainResume found = change([&] { return resume_pass(fingerprint); });
    return py::make_tuple(found.found, found.forward, found.backward);
  }
  void wait() {
    const Running running(*this, nullptr);
    const auto work = [&] {
      wait_for_plan();
      return true;
    };
    interruptible(work, [&] { cancel_planning(); });
  }

 private:
  [[nodiscard]] PythonStates& held() { return static_cast<PythonStates&>(states()); }

  // Calls the observer. Ctrl-C is noticed here while a plan is made.
  void report(const ChainProgress& progress) {
    const bool wanted = held().observed();
    if (!wanted && progress.phase != ChainProgress::Phase::planning) return;
    const py::gil_scoped_acquire interpreter;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!wanted) return;
    held().functions().observer(name(progress.phase), progress.position, progress.layer, progress.replays,
                                progress.stored, progress.planned);
  }

  std::thread::id runner_;  // the thread of the call that goes on; the interpreter's lock guards it
};

// Not with the interpreter's lock: the end of a chain may wait for a plan or a file.
struct EndWithoutInterpreter {
  void operator()(PythonChain* chain) const {
    const py::gil_scoped_release no_interpreter;
    delete chain;
  }
};
using ChainPointer = std::unique_ptr<PythonChain, EndWithoutInterpreter>;

ChainPointer make_chain(const std::variant<py::none, int, std::vector<int>>& layers, const std::string& kind,
                        bool tapes, bool backward) {
  ForwardKind how = ForwardKind::returns;
  if (kind == "in_place") {
    how = ForwardKind::in_place;
  } else if (kind == "into") {
    how = ForwardKind::into;
  } else if (kind != "returns") {
    throw BadOption("[chain] kind is '" + kind + "': it must be returns, in_place or into");
  }
  ChainLayers all = ChainLayers::unknown();
  if (const int* count = std::get_if<int>(&layers)) all = ChainLayers(*count);
  if (const auto* numbers = std::get_if<std::vector<int>>(&layers)) all = ChainLayers(*numbers);
  return ChainPointer(new PythonChain(std::move(all), how, tapes, backward));
}

StateTier state_tier_of(const std::string& name) {
  if (name == "packed") return StateTier::packed;
  if (name == "disk") return StateTier::disk;
  throw BadOption("[chain] tier is '" + name + "': it must be packed or disk");
}

void add_settings(py::class_<PythonChain, ChainPointer>& chain) {
  chain.def("get_schedule", [](const PythonChain& self) { return SharedSchedule{self.asked().schedule()}; })
      .def(
          "set_schedule",
          [](PythonChain& self, const SharedSchedule& schedule) {
            self.change([&] { self.schedule(schedule.pointer); });
          },
          py::arg("schedule"))
      .def("get_enabled", [](const PythonChain& self) { return self.asked().enabled(); })
      .def(
          "set_enabled", [](PythonChain& self, bool on) { self.change([&] { self.enabled(on); }); }, py::arg("on"))
      .def("get_sizes", [](const PythonChain& self) { return dict_of(self.asked().sizes()); })
      .def(
          "set_sizes",
          [](PythonChain& self, const py::dict& sizes) {
            const ChainForm form = form_of(sizes);
            self.change([&] { self.sizes(form); });
          },
          py::arg("sizes"))
      .def("get_verify", [](const PythonChain& self) { return name_of(self.asked().verify()); })
      .def(
          "set_verify",
          [](PythonChain& self, const std::string& when) {
            const Verify verify = verify_of("chain", when);
            self.change([&] { self.verify(verify); });
          },
          py::arg("when"))
      .def(
          "by_hand",
          [](PythonChain& self, std::optional<std::size_t> maximum, bool on_disk) {
            self.change([&] { self.by_hand({.maximum = maximum, .on_disk = on_disk}); });
          },
          py::arg("maximum"), py::arg("on_disk"))
      .def("get_codec", &PythonChain::get_codec)
      .def("set_codec", &PythonChain::set_codec, py::arg("name"))
      .def("get_disk", &PythonChain::get_disk)
      .def("set_disk", &PythonChain::set_disk, py::arg("folder"), py::arg("budget"), py::arg("keep"),
           py::arg("transit"))
      .def("resume", &PythonChain::resume, py::arg("fingerprint"))
      .def(
          "plan_in_background", [](PythonChain& self, bool on) { self.change([&] { self.plan_in_background(on); }); },
          py::arg("on"))
      .def("wait_for_plan", &PythonChain::wait)
      .def("cancel_planning", [](PythonChain& self) { self.cancel_planning(); });
}

}  // namespace

void add_chains(py::module_& module) {
  py::class_<Functions>(module, "Functions")
      .def(py::init([](const py::object& forward, const py::object& backward, const py::object& observer) {
             return Functions{forward, backward, observer};
           }),
           py::arg("forward"), py::arg("backward"), py::arg("observer"));
  py::class_<LoopPass>(module, "LoopPass").def(py::init<>());

  py::class_<PythonChain, ChainPointer> chain(module, "Chain");
  chain.def(py::init(&make_chain), py::arg("layers"), py::arg("kind"), py::arg("tapes"), py::arg("backward"))
      .def("forward", &PythonChain::forward, py::arg("functions"), py::arg("input"), py::arg("first"), py::arg("copy"))
      .def("forward_until", &PythonChain::forward_until, py::arg("functions"), py::arg("input"), py::arg("done"),
           py::arg("copy"))
      .def("backward", &PythonChain::backward, py::arg("functions"), py::arg("gradient"))
      .def("loop_forward", &PythonChain::loop_forward, py::arg("functions"), py::arg("loop"), py::arg("input"),
           py::arg("cost"))
      .def("loop_backward", &PythonChain::loop_backward, py::arg("functions"), py::arg("loop"), py::arg("gradient"))
      .def("measure", &PythonChain::measure, py::arg("functions"), py::arg("input"))
      .def("give_back", &PythonChain::give_back, py::arg("state"))
      .def("save", &PythonChain::save, py::arg("position"), py::arg("state"), py::arg("copy"))
      .def("state", &PythonChain::state, py::arg("position"))
      .def("recompute", &PythonChain::recompute, py::arg("functions"), py::arg("position"))
      .def("clear", [](PythonChain& self) { self.change([&] { self.clear(); }); })
      .def("statistics", [](const PythonChain& self) { return dict_of(self.asked().statistics()); })
      .def(
          "store_statistics",
          [](const PythonChain& self, const std::string& tier) {
            return dict_of(self.asked().store_statistics(state_tier_of(tier)));
          },
          py::arg("tier"))
      .def("plan", [](const PythonChain& self) { return self.asked().plan(); })
      .def("trace", [](const PythonChain& self) { return self.asked().trace(); })
      .def(
          "remembers", [](const PythonChain& self, Id position) { return self.asked().remembers(position); },
          py::arg("position"));
  add_settings(chain);
}

}  // namespace reprise::python
