// The table of operators that leave elements uninitialized, compared with what they do on memory that is filled.
#include "torch/recipes/uninitialized.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "torch/memory/meter.h"

namespace reprise::internal {
namespace {

using Stack = std::vector<c10::IValue>;
using Tensors = std::vector<at::Tensor>;

constexpr std::uint8_t pattern = 0x5a;

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// Returns what a call leaves on memory that is filled: in arguments that the operator writes into, or else its results.
Tensors outcome_on_memory_of(std::uint8_t byte, const c10::OperatorHandle& op, Stack stack) {
  const meter::FilledMemory filled(byte);
  const auto& arguments = op.schema().arguments();
  Tensors written(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (is_written(arguments[i])) stack[i] = written[i] = at::empty_like(stack[i].toTensor());
  }
  op.callBoxed(stack);
  if (std::any_of(arguments.begin(), arguments.end(), is_written)) return written;
  Tensors results;
  for (const c10::IValue& result : stack) results.push_back(result.toTensor());
  return results;
}

at::Tensor bytes_of(const at::Tensor& tensor) {
  return tensor.contiguous().view(-1).view(at::kByte);
}

// Returns the indices of results, or of arguments, that show what memory was filled with. Expects that there is no
// other difference.
std::vector<int> seen_in(const c10::OperatorHandle& op, const Stack& stack) {
  const Tensors zeros = outcome_on_memory_of(0, op, stack), others = outcome_on_memory_of(pattern, op, stack);
  std::vector<int> seen;
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    if (!zeros[i].defined() || zeros[i].numel() == 0) continue;
    const at::Tensor differs = bytes_of(zeros[i]) != bytes_of(others[i]);
    if (!differs.any().item<bool>()) continue;
    seen.push_back(static_cast<int>(i));
    EXPECT_TRUE((bytes_of(zeros[i]).masked_select(differs) == 0).all().item<bool>()) << "memory was read for " << i;
    EXPECT_TRUE((bytes_of(others[i]).masked_select(differs) == pattern).all().item<bool>())
        << "memory was read for " << i;
  }
  return seen;
}

// Calls an operator, and then its variant with `out`. Expects that they leave nothing uninitialized but what the table
// says. It may say more: what a library writes depends on its version and on the processor.
// executables/uninitialized.py says whether a row is needed.
void expect_in_table(const std::string& name, const std::string& overload, const std::string& out, Stack stack) {
  for (const std::string& variant : {overload, out}) {
    const std::string full = variant.empty() ? name : name + "." + variant;
    SCOPED_TRACE(full);
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), variant.c_str());
    const UninitializedParts* const row = find_uninitialized_parts(full);
    ASSERT_NE(row, nullptr);
    if (!row->reads_uninitialized) {
      const auto& listed = variant == out ? row->arguments : row->results;
      for (const int index : seen_in(op, stack)) {
        EXPECT_EQ(std::count(listed.begin(), listed.end(), index), 1) << index << " is not in the row";
      }
    }
    Stack results = stack;
    op.callBoxed(results);
    stack.insert(stack.end(), results.begin(), results.end());
  }
}

TEST(UninitializedTable, HasTheAlphasOfCtc) {
  const auto scores = at::randn({12, 4, 6}).log_softmax(2), targets = at::randint(1, 6, {4, 5}, at::kLong);
  const std::vector<std::int64_t> inputs{12, 9, 7, 3}, lengths{5, 3, 0, 1};
  expect_in_table("aten::_ctc_loss", "", "out", {scores, targets, inputs, lengths, 0, true});
  expect_in_table("aten::_ctc_loss", "Tensor", "Tensor_out",
                  {scores, targets, at::tensor(inputs), at::tensor(lengths), 0, true});
  EXPECT_EQ(seen_in(c10::Dispatcher::singleton().findSchemaOrThrow("aten::_ctc_loss", ""),
                    {scores, targets, inputs, lengths, 0, true}),
            std::vector<int>{1});
}

TEST(UninitializedTable, HasTheWorkspaceOfRecurrentLayers) {
  if (!at::globalContext().hasMKLDNN()) GTEST_SKIP() << "LibTorch was built without oneDNN";
  constexpr int mode_lstm = 2, inputs = 5, hidden = 6;
  const auto state = at::zeros({1, 3, hidden});
  expect_in_table("aten::mkldnn_rnn_layer", "", "out",
                  {at::randn({7, 3, inputs}), at::randn({4 * hidden, inputs}), at::randn({4 * hidden, hidden}),
                   at::randn({4 * hidden}), at::randn({4 * hidden}), state, state, false, std::vector<std::int64_t>{},
                   mode_lstm, hidden, 1, true, false, false, true});
}

TEST(UninitializedTable, HasOperatorsThatReadWhatTheyDidNotWrite) {
  const Stack systems{at::randn({2, 7, 4}), at::randn({2, 7, 3}), c10::IValue(), c10::IValue()};
  expect_in_table("aten::linalg_lstsq", "", "out", systems);
  const auto lstsq = c10::Dispatcher::singleton().findSchemaOrThrow("aten::linalg_lstsq", "");
  const auto solution = [&](std::uint8_t byte) { return outcome_on_memory_of(byte, lstsq, systems)[0]; };
  EXPECT_TRUE(solution(0).equal(solution(0)));
  EXPECT_FALSE(solution(0).equal(solution(pattern)));

  const UninitializedParts* const row = find_uninitialized_parts("aten::_compute_linear_combination.out");
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(row->reads_uninitialized) << "it adds to the contents of `out`";
}

TEST(UninitializedTable, NamesResultsAndWrittenArgumentsOfOperators) {
  for (const UninitializedParts& row : uninitialized_table()) {
    SCOPED_TRACE(std::string(row.name));
    EXPECT_TRUE(row.reads_uninitialized || !row.results.empty() || !row.arguments.empty());
    const auto dot = std::min(row.name.find('.'), row.name.size());
    const std::string overload(row.name.substr(std::min(dot + 1, row.name.size())));
    const auto handle = c10::Dispatcher::singleton().findSchema({std::string(row.name.substr(0, dot)), overload});
    ASSERT_TRUE(handle.has_value());
    const auto& schema = handle->schema();
    for (const int result : row.results) EXPECT_LT(static_cast<std::size_t>(result), schema.returns().size());
    for (const int argument : row.arguments) {
      ASSERT_LT(static_cast<std::size_t>(argument), schema.arguments().size());
      EXPECT_TRUE(is_written(schema.arguments()[static_cast<std::size_t>(argument)]));
    }
  }
  EXPECT_EQ(find_uninitialized_parts("aten::mul.Tensor"), nullptr);
}

}  // namespace
}  // namespace reprise::internal
