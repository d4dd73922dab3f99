// The operator table, by the schemas of LibTorch's own operators.
#include "torch/recipes/operator_table.h"

#include <gtest/gtest.h>
#include <torch/library.h>

#include <array>
#include <set>

#include "torch/recipes/random_tape.h"

namespace reprise::internal {
namespace {

using Kind = OperatorInfo::Kind;

const OperatorInfo& operator_named(const char* name, const char* overload = "") {
  return find_operator(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
}

TEST(OperatorTable, RecordsWhatMakesAndWhatWritesTensors) {
  for (const auto& [name, overload] :
       std::vector<std::pair<const char*, const char*>>{{"aten::mul", "Tensor"},
                                                        {"aten::mm", ""},
                                                        {"aten::add_", "Tensor"},
                                                        {"aten::mm", "out"},
                                                        {"aten::native_dropout", ""},
                                                        {"aten::_foreach_add_", "Scalar"}}) {
    EXPECT_EQ(operator_named(name, overload).kind, Kind::recorded) << name;
  }
}

TEST(OperatorTable, LooksThroughWhatIsComposedOfOthers) {
  EXPECT_EQ(operator_named("aten::linear").kind, Kind::transparent);
  EXPECT_EQ(operator_named("aten::reshape").kind, Kind::transparent);
}

TEST(OperatorTable, IgnoresViewsAndWhatLeavesContentsUndefined) {
  EXPECT_EQ(operator_named("aten::view").kind, Kind::ignored);
  EXPECT_EQ(operator_named("aten::transpose", "int").kind, Kind::ignored);
  EXPECT_EQ(operator_named("aten::t_").kind, Kind::ignored);
  EXPECT_EQ(operator_named("aten::resize_").kind, Kind::ignored);
  EXPECT_EQ(operator_named("aten::_local_scalar_dense").kind, Kind::ignored);
}

TEST(OperatorTable, DoesNotLookIntoFactories) {
  EXPECT_EQ(operator_named("aten::zeros_like").kind, Kind::opaque);
  EXPECT_EQ(operator_named("aten::arange").kind, Kind::opaque);
}

TEST(OperatorTable, KnowsWhatIsReadWrittenAndOverwritten) {
  EXPECT_EQ(operator_named("aten::add_", "Tensor").access[0], Access::write);
  EXPECT_EQ(operator_named("aten::add_", "Tensor").access[1], Access::read);
  EXPECT_EQ(operator_named("aten::copy_").access[0], Access::overwrite);
  EXPECT_EQ(operator_named("aten::mm", "out").access[2], Access::overwrite);
  EXPECT_FALSE(operator_named("aten::mul", "Tensor").writes);
  EXPECT_TRUE(operator_named("aten::_foreach_add_", "Scalar").writes);
}

TEST(OperatorTable, KnowsWhoDrawsAndFromWhere) {
  EXPECT_TRUE(operator_named("aten::native_dropout").random);
  EXPECT_EQ(operator_named("aten::native_dropout").generator_argument, -1);
  EXPECT_EQ(operator_named("aten::bernoulli_", "float").generator_argument, 2);
  EXPECT_FALSE(operator_named("aten::mm").random);
}

TEST(OperatorTable, KnowsStatisticsAndWhetherACallIsOneInTraining) {
  const OperatorInfo& info = operator_named("aten::native_batch_norm");
  ASSERT_TRUE(info.batch_norm);
  EXPECT_EQ(info.first_statistic, 3);
  EXPECT_EQ(info.last_statistic, 4);
  ASSERT_EQ(info.training_argument, 5);
  std::array<c10::IValue, 8> inputs;
  for (const bool training : {true, false}) {
    inputs[5] = training;
    EXPECT_EQ(info.is_training(c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size())), training);
  }
}

TEST(OperatorTable, HasOneEntryForAnOverloadFromThenOn) {
  EXPECT_EQ(&operator_named("aten::mm"), &operator_named("aten::mm"));
  EXPECT_NE(&operator_named("aten::mm"), &operator_named("aten::mm", "out"));
  EXPECT_EQ(operator_named("aten::mm", "out").name, "aten::mm.out");
}

TEST(OperatorTable, KnowsOperatorsOfLibrariesThatComeAndGoByTheirOwnNames) {
  std::set<const void*> addresses;
  bool met_again = false;  // an address that the operator of another library had
  for (int i = 0; i < 64 && !met_again; ++i) {
    const std::string name = "an_operator_with_a_long_name_" + std::to_string(10 + i);
    torch::Library library(torch::Library::DEF, "reprise_test", std::nullopt, __FILE__, __LINE__);
    const std::string schema = name + (i % 2 == 0 ? "(Tensor x) -> Tensor" : "(Tensor(a!) x) -> Tensor(a!)");
    library.def(schema.c_str());
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(("reprise_test::" + name).c_str(), "");
    met_again = !addresses.insert(handle.schema().name().c_str()).second;
    EXPECT_EQ(find_operator(handle).name, "reprise_test::" + name);
    EXPECT_EQ(find_operator(handle).writes, i % 2 == 1);
    EXPECT_FALSE(find_operator(handle).gone);
  }
  EXPECT_TRUE(met_again) << "nothing was tested";
}

TEST(OperatorTable, SaysOfAnOperatorThatItIsGone) {
  const OperatorInfo* info = nullptr;
  {
    torch::Library library(torch::Library::DEF, "reprise_test", std::nullopt, __FILE__, __LINE__);
    library.def("passing(Tensor x) -> Tensor");
    info = &operator_named("reprise_test::passing");
    EXPECT_FALSE(info->gone);
  }
  EXPECT_TRUE(info->gone);
}

TEST(Interception, DoesNotLookAtOperatorsThatHaveGoneSinceTheLastTime) {
  draws::prepare();
  {
    torch::Library library(torch::Library::DEF, "reprise_test", std::nullopt, __FILE__, __LINE__);
    for (const char* const name : {"a", "b", "c", "d"})
      library.def((std::string(name) + "(Tensor x) -> Tensor").c_str());
  }
  draws::prepare();  // what is left of them is not theirs any more
}

}  // namespace
}  // namespace reprise::internal
