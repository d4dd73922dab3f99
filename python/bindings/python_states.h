// The states of a chain whose closures are Python's.
//
// The chain runs without the interpreter's lock. What is here takes it where it touches an object, which is also where
// closures run. Closures belong to whoever calls the chain, and are given with each call: an object that has a chain
// and whose methods are its closures can be freed then.
//
// A closure that returns states gets arrays that it cannot write, of the same memory. Arrays that it returns are held
// as they are, without a copy; one that lies where another state lies that is held is an error, and not a wrong
// gradient.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "reprise/chain/internal/chain_states.h"
#include "reprise/chain/internal/typed_states.h"

namespace reprise::python {

// How forward makes a state.
enum class ForwardKind : std::uint8_t {
  returns,   // forward(layer, before) -> after
  in_place,  // forward(layer, state)
  into,      // forward(layer, before, after)
};

// The functions of the caller's, for the time of one call. None where there is none.
struct Functions {
  pybind11::object forward = pybind11::none();
  pybind11::object backward = pybind11::none();
  pybind11::object observer = pybind11::none();
};

class PythonStates final : public internal::ChainStates {
 public:
  PythonStates(ForwardKind kind, bool tapes, bool has_backward)
      : kind_(kind), tapes_wanted_(tapes), has_backward_(has_backward) {}
  ~PythonStates() override;

  // ---- the side of the caller, with the interpreter's lock ----

  void functions(const Functions* functions) { functions_ = functions; }  // for the call that follows; null: none
  void call_over();                                                       // nothing that was given for it is held
  [[nodiscard]] const Functions& functions() const { return *functions_; }
  // A state, which is refused here if it is none, and put when the chain is ready for it. A copy of it if closures
  // write to states, and if the caller wants that.
  void offer(pybind11::object state, bool copy);
  [[nodiscard]] Id put_offered() { return hold(std::move(offered_)); }
  [[nodiscard]] pybind11::object take(Id state);
  [[nodiscard]] pybind11::object shown(Id state) const { return (*this)[state].shown; }
  void lend(pybind11::object state);  // for the call that follows
  void work_on(pybind11::object gradient);
  [[nodiscard]] pybind11::object take_gradient() { return std::move(gradient_); }
  void give_back(pybind11::object state);
  [[nodiscard]] bool writes() const { return kind_ != ForwardKind::returns; }
  [[nodiscard]] bool observed() const { return functions_ && !functions_->observer.is_none(); }

  // ---- the side of the chain, without it ----

  Made forward(int number, Id state, bool with_tape) override;
  bool is_in_place() const override { return kind_ == ForwardKind::in_place; }
  bool is_by_value() const override { return false; }  // none takes the slot of another: memory of both is compared
  Made advance(int number, Id state, bool with_tape) override;
  bool has_backward() const override { return has_backward_; }
  void backward(int number, Id state, Id tape) override;

  Bytes bytes(Id state) const override { return (*this)[state].bytes; }
  Bytes tape_bytes(Id tape) const override { return tapes_[tape].bytes; }
  std::optional<Bytes> gradient_bytes() const override { return gradient_bytes_; }
  Bytes drop(Id state) override;
  Bytes drop_tape(Id tape) override;
  void clear() noexcept override;
  void hold_spares(bool hold) override;
  Bytes spare_bytes() const override;

  Id clone(Id state) override;
  void encode(Id state, const std::function<void(const ArrayView&)>& use) const override;
  Id decode(Array array) override;
  bool is_codable() const override { return true; }
  bool is_comparable() const override { return true; }

  void encode_gradient(const std::function<void(const ArrayView&)>& use) const override;
  void decode_gradient(Array array) override;
  bool is_gradient_codable() const override { return gradient_bytes_.has_value(); }

 private:
  struct Held {
    pybind11::object value;
    pybind11::object shown;  // the same with arrays that cannot be written
    Bytes bytes = 0;
    std::vector<std::uintptr_t> addresses;  // of its arrays that can be written
  };
  [[nodiscard]] const Held& operator[](Id state) const { return state == lent ? lent_ : states_[state]; }

  [[nodiscard]] static Held look(pybind11::object state);
  [[nodiscard]] Id put(pybind11::object state) { return hold(look(std::move(state))); }
  [[nodiscard]] Id hold(Held&&);
  [[nodiscard]] Made made(int number, Held&&, pybind11::object tape, bool with_tape);
  void require_own_memory(int number, const Held&) const;
  [[nodiscard]] pybind11::object call_writing(int number, Id from, const pybind11::object& to, bool with_tape);
  [[nodiscard]] pybind11::object copy_of(const Held&, bool contents);
  void count(const Held&, int more);
  void measure_gradient();

  const ForwardKind kind_;
  const bool tapes_wanted_, has_backward_;
  const Functions* functions_ = nullptr;
  internal::Slots<Held> states_, tapes_;
  std::unordered_map<std::uintptr_t, int> held_at_;  // by address: how many states have an array there
  std::vector<Held> spares_;
  bool hold_spares_ = false;
  Held offered_, lent_;
  pybind11::object gradient_;
  std::optional<Bytes> gradient_bytes_;
};

}  // namespace reprise::python
