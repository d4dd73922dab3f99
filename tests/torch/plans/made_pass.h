// RecordedPassTracker made by hand, for tests of what reads them: operators by name, values by number, sizes in bytes.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "torch/plans/recorded_pass.h"

namespace reprise::testing {

class MadePass {
 public:
  MadePass() { pass_.recipes = std::make_shared<internal::Recipes>(); }

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
    pass_.recipes->writes.push_back({.before = value, .bytes = bytes_of(value)});
    return end(op, {.value = add_value(bytes_of(value), op), .result = 0, .write = 0});
  }

  // The operator that was added last cannot be replayed.
  void why_not_replayable(const char* why) { pass_.recipes->operators.back().why_not_replayable = why; }
  void choice(Choice choice) { pass_.recipes->operators.back().choice = choice; }

  // A node of backward that needs these.
  void event(const std::string& name, const std::vector<Id>& needs) {
    const std::uint64_t hash = std::hash<std::string>()(name);
    for (const Id value : needs) pass_.seen.needs.push_back({static_cast<Id>(pass_.seen.moments.size()), value});
    pass_.seen.moments.push_back({.name = hash, .cost = 5});
    pass_.seen.add_event(name.c_str(), hash);
  }

  // The program lets go of it after this moment.
  void release(Id value, Id moment) {
    auto& released = pass_.seen.released;
    if (released.size() <= static_cast<std::size_t>(value)) released.resize(static_cast<std::size_t>(value) + 1, -1);
    released[value] = moment;
  }
  // Other bytes at the moment that was added last: before it, and at most while it ran.
  void other(Bytes between, Bytes within) {
    pass_.other.resize(pass_.seen.moments.size());
    pass_.other.back() = {between, within};
  }
  void packs(Id value, const PackedForm& form) {
    pass_.seen.forms.resize(pass_.recipes->values.size());
    pass_.seen.forms[value] = form;
  }

  [[nodiscard]] internal::Recipes& recipes() { return *pass_.recipes; }
  [[nodiscard]] const internal::RecordedPass& pass() {
    pass_.other.resize(pass_.seen.moments.size());
    return pass_;
  }

 private:
  Id add_value(Bytes bytes, Id maker) {
    pass_.recipes->values.push_back({.bytes = bytes, .maker = maker});
    return static_cast<Id>(pass_.recipes->values.size()) - 1;
  }
  [[nodiscard]] Bytes bytes_of(Id value) const { return pass_.recipes->values[value].bytes; }

  Id begin(std::initializer_list<Id> inputs) {
    static const internal::OperatorInfo& info =
        internal::find_operator(c10::Dispatcher::singleton().findSchemaOrThrow("aten::mul", "Tensor"));
    internal::Recipes& recipes = *pass_.recipes;
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
    pass_.recipes->outputs.push_back(output);
    pass_.seen.moment_of.push_back(static_cast<Id>(pass_.seen.moments.size()));
    pass_.seen.moments.push_back({.op = op, .cost = 10});
    pass_.costs.push_back(10);
    return output.value;
  }

  internal::RecordedPass pass_;
};

}  // namespace reprise::testing
