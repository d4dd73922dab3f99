#include "torch/plans/script_bytes.h"

#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

// What is told beside the lists.
struct Numbers {
  Bytes budget, peak;
  double added_cost, plain_cost, gap;
};

// All lists of numbers, in the order in which they are told.
template <class S, class Function>
void for_each_list(S& script, const Function& function) {
  function(script.steps);
  function(script.after);
  function(script.before);
  function(script.events);
  function(script.recipes);
  function(script.owned);
  function(script.last_drop);
  function(script.forms);
  function(script.other);
  function(script.most_other);
}

}  // namespace

void ByteWriter::script(const Script& script) {
  for_each_list(script, [this](const auto& one) { list(one); });
  number(script.replays.size());
  for (const Script::Replay& replay : script.replays) {
    list(replay.operators);
    list(replay.outputs);
  }
  number(Numbers{script.budget, script.peak, script.added_cost, script.plain_cost, script.gap});
}

Script ByteReader::script() {
  Script script;
  for_each_list(script, [this](auto& one) { list(one); });
  script.replays.resize(number<std::size_t>());
  for (Script::Replay& replay : script.replays) {
    list(replay.operators);
    list(replay.outputs);
  }
  const auto numbers = number<Numbers>();
  script.budget = numbers.budget;
  script.peak = numbers.peak;
  script.added_cost = numbers.added_cost;
  script.plain_cost = numbers.plain_cost;
  script.gap = numbers.gap;
  return script;
}

std::string_view ByteReader::take(std::size_t count, std::size_t each) {
  if (count > bytes_.size() / each) throw Error("what the copy of the process told ends too soon");
  const std::string_view taken = bytes_.substr(0, count * each);
  bytes_.remove_prefix(taken.size());
  return taken;
}

}  // namespace reprise::internal
