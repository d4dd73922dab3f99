// Periods made by hand, for tests of what reads them: operators by name, values by number, sizes in bytes.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "torch/plans/period.h"

namespace reprise::testing {

class MadePeriod {
 public:
  MadePeriod() { period_.recipes = std::make_shared<internal::Recipes>(); }

  // A value that comes from outside.
  Id outside(Bytes bytes) { return add_value(bytes, internal::no_operator); }

  // An operator that reads these and makes one value of so many bytes. It takes ten microseconds.
  Id run(std::initializer_list<Id> inputs, Bytes bytes) {
    const Id op = begin(inputs);
    return end(op, {.value = add_value(bytes, op), .result = 0});
  }

  // An operator that reads the value and writes the next version of it into the same storage.
  Id run_in_place(Id value) {
    const Id op = begin({value});
    period_.recipes->writes.push_back({.before = value, .bytes = bytes_of(value)});
    return end(op, {.value = add_value(bytes_of(value), op), .result = 0, .write = 0});
  }

  // The operator that was added last cannot be replayed.
  void obstacle(const char* why) { period_.recipes->operators.back().obstacle = why; }
  void choice(Choice choice) { period_.recipes->operators.back().choice = choice; }

  // A node of backward that needs these.
  void event(const std::string& name, const std::vector<Id>& needs) {
    const std::uint64_t hash = std::hash<std::string>()(name);
    for (const Id value : needs) period_.seen.needs.push_back({static_cast<Id>(period_.seen.moments.size()), value});
    period_.seen.moments.push_back({.name = hash, .cost = 5});
    period_.seen.add_event(name.c_str(), hash);
  }

  // The program lets go of it after this moment.
  void release(Id value, Id moment) {
    auto& released = period_.seen.released;
    if (released.size() <= static_cast<std::size_t>(value)) released.resize(static_cast<std::size_t>(value) + 1, -1);
    released[value] = moment;
  }
  // Other bytes at the moment that was added last: before it, and at most while it ran.
  void other(Bytes between, Bytes within) {
    period_.other.resize(period_.seen.moments.size());
    period_.other.back() = {between, within};
  }
  void packs(Id value, const PackedForm& form) {
    period_.seen.forms.resize(period_.recipes->values.size());
    period_.seen.forms[value] = form;
  }

  [[nodiscard]] internal::Recipes& recipes() { return *period_.recipes; }
  [[nodiscard]] const internal::Period& period() {
    period_.other.resize(period_.seen.moments.size());
    return period_;
  }

 private:
  Id add_value(Bytes bytes, Id maker) {
    period_.recipes->values.push_back({.bytes = bytes, .maker = maker});
    return static_cast<Id>(period_.recipes->values.size()) - 1;
  }
  [[nodiscard]] Bytes bytes_of(Id value) const { return period_.recipes->values[value].bytes; }

  Id begin(std::initializer_list<Id> inputs) {
    static const internal::OperatorInfo& info =
        internal::find_operator(c10::Dispatcher::singleton().findSchemaOrThrow("aten::mul", "Tensor"));
    internal::Recipes& recipes = *period_.recipes;
    const auto op = static_cast<Id>(recipes.operators.size());
    recipes.operators.push_back({.info = &info, .start = recipes.marks()});
    for (const Id input : inputs) {
      recipes.references.emplace_back();
      recipes.references.back().value = input;
      recipes.references.back().defined = true;
    }
    return op;
  }
  Id end(Id op, internal::Output output) {
    period_.recipes->outputs.push_back(output);
    period_.seen.moment_of.push_back(static_cast<Id>(period_.seen.moments.size()));
    period_.seen.moments.push_back({.op = op, .cost = 10});
    period_.costs.push_back(10);
    return output.value;
  }

  internal::Period period_;
};

}  // namespace reprise::testing
