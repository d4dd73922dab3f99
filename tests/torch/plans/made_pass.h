// Recorded passes made by hand, for tests of what reads them: operators by name, values by number, sizes in bytes.
#pragma once

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
  Id run(const std::vector<Id>& inputs, Bytes bytes) {
    const Id op = begin(inputs);
    return end(op, {.value = add_value(bytes, op), .result = 0});
  }

  // An operator that reads the value and writes the next version of it into the same storage.
  Id run_in_place(Id value) {
    const Id op = begin({value});
    pass_.recipes->writes.push_back({.before = value, .bytes = bytes_of(value)});
    return end(op, {.value = add_value(bytes_of(value), op), .result = 0, .write = 0});
  }

  // An operator that writes a value over all of a storage that held this one; no_value: that held none.
  Id run_over(Id before, Bytes bytes) {
    const Id op = begin({});
    pass_.recipes->writes.push_back({.access = internal::Access::overwrite, .before = before, .bytes = bytes});
    return end(op, {.value = add_value(bytes, op), .result = 0, .write = 0});
  }

  // The operator that was added last cannot be replayed.
  void why_not_replayable(const char* why) { pass_.recipes->operators.back().why_not_replayable = why; }
  void choice(Choice choice) { pass_.recipes->operators.back().choice = choice; }

  // A node of backward that needs these.
  void event(const std::string& name, const std::vector<Id>& needs) {
    const std::uint64_t hash = std::hash<std::string>()(name);
    for (const Id value : needs) pass_.profile.needs.push_back({static_cast<Id>(pass_.profile.moments.size()), value});
    pass_.profile.moments.push_back({.name = hash, .event_cost = 5});
    pass_.profile.add_event(name.c_str(), hash);
  }

  // The program lets go of it after this moment.
  void release(Id value, Id moment) {
    auto& released = pass_.profile.released;
    if (released.size() <= static_cast<std::size_t>(value)) released.resize(static_cast<std::size_t>(value) + 1, -1);
    released[value] = moment;
  }
  // Other bytes at a moment: before it, and at most while it ran.
  void other(Id moment, Bytes between, Bytes within) {
    pass_.profile.other.resize(pass_.profile.moments.size());
    pass_.profile.other[moment] = {between, within};
  }
  void packs(Id value, const PackedForm& form) {
    pass_.profile.forms.resize(pass_.recipes->values.size());
    pass_.profile.forms[value] = form;
  }

  [[nodiscard]] internal::Recipes& recipes() { return *pass_.recipes; }
  [[nodiscard]] const internal::RecordedPass& pass() {
    pass_.profile.other.resize(pass_.profile.moments.size());
    return pass_;
  }

 private:
  Id add_value(Bytes bytes, Id maker) {
    pass_.recipes->values.push_back({.bytes = bytes, .maker = maker});
    return static_cast<Id>(pass_.recipes->values.size()) - 1;
  }
  [[nodiscard]] Bytes bytes_of(Id value) const { return pass_.recipes->values[value].bytes; }

  Id begin(const std::vector<Id>& inputs) {
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
    pass_.profile.moment_of.push_back(static_cast<Id>(pass_.profile.moments.size()));
    pass_.profile.moments.push_back({.op = op});
    pass_.profile.costs.push_back(10);
    return output.value;
  }

  internal::RecordedPass pass_;
};

// x -> a -> b -> c, and backward needs b, then a.
struct ChainPass {
  MadePass made;
  Id x = made.outside(100), a = made.run({x}, 100), b = made.run({a}, 200), c = made.run({b}, 50);
  ChainPass() {
    made.event("back of b", {b});
    made.event("back of a", {a});
    for (const auto& [value, moment] : {std::pair{a, 1}, {b, 2}, {c, 2}}) made.release(value, moment);
  }
};

}  // namespace reprise::testing
