#include "torch/plans/executable_plan_bytes.h"

#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

// What is written beside the lists.
struct Numbers {
  Bytes budget, peak;
  double added_cost, plain_cost, gap;
};

// All lists of numbers, in the order in which they are written.
template <class S, class Function>
void for_each_list(S& executable, const Function& function) {
  function(executable.steps);
  function(executable.after);
  function(executable.before);
  function(executable.events);
  function(executable.recipes);
  function(executable.owned);
  function(executable.last_drop);
  function(executable.packings);
  function(executable.most_other);
}

}  // namespace

void ByteWriter::executable(const ExecutablePlan& executable) {
  for_each_list(executable, [this](const auto& one) { list(one); });
  number(executable.replays.size());
  for (const ExecutablePlan::Replay& replay : executable.replays) {
    list(replay.operators);
    list(replay.outputs);
  }
  number(Numbers{executable.budget, executable.peak, executable.added_cost, executable.plain_cost, executable.gap});
}

ExecutablePlan ByteReader::executable() {
  ExecutablePlan executable;
  for_each_list(executable, [this](auto& one) { list(one); });
  executable.replays.resize(number<std::size_t>());
  for (ExecutablePlan::Replay& replay : executable.replays) {
    list(replay.operators);
    list(replay.outputs);
  }
  const auto numbers = number<Numbers>();
  executable.budget = numbers.budget;
  executable.peak = numbers.peak;
  executable.added_cost = numbers.added_cost;
  executable.plain_cost = numbers.plain_cost;
  executable.gap = numbers.gap;
  return executable;
}

std::string_view ByteReader::take(std::size_t count, std::size_t each) {
  if (count > bytes_.size() / each) throw Error("what the copy of the process wrote ends too soon");
  const std::string_view taken = bytes_.substr(0, count * each);
  bytes_.remove_prefix(taken.size());
  return taken;
}

}  // namespace reprise::internal
