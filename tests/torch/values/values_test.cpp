// The values of a recording: bound, kept, packed, evicted, copied and lost.
#include "torch/values/values.h"

#include <ATen/native/Resize.h>
#include <gtest/gtest.h>

#include <cstring>

#include "torch/evict/saved_values.h"
#include "torch/memory/arbiter.h"
#include "torch/plans/made_pass.h"
#include "torch/values/recording.h"
#include "torch/values/recordings.h"

namespace reprise::testing {
using namespace internal;
namespace {

using enum Availability;

TEST(Availability, OfAValueNeverLeadsBack) {
  constexpr std::array all{not_seen, normal, recipe_broken, saved_copy, lost, lost_no_room};
  for (const Availability from : all) {
    for (const Availability to : all) EXPECT_FALSE(may_become(from, to) && to <= from);
  }
  EXPECT_TRUE(may_become(not_seen, normal));
  EXPECT_FALSE(may_become(not_seen, lost));
  EXPECT_TRUE(may_become(normal, recipe_broken) && may_become(normal, saved_copy) && may_become(normal, lost_no_room));
  EXPECT_TRUE(may_become(recipe_broken, saved_copy) && may_become(recipe_broken, lost));
  for (const Availability to : all) EXPECT_FALSE(may_become(saved_copy, to) || may_become(lost, to));
}

// A pass of one operator, met so many times, and a plan for it that does this after it.
std::shared_ptr<RecordedPass> planned(int met, ExecutablePlan::Step::Kind what) {
  MadePass made;
  (void)made.run({made.outside(64)}, 64);
  auto pass = std::make_shared<RecordedPass>(made.pass());
  auto executable = std::make_shared<ExecutablePlan>();
  executable->steps = {{.kind = what, .target = 1}};
  executable->after = {0};
  executable->before = {1};
  executable->events = {0};
  executable->owned = {0, 0};
  executable->last_drop = {-1, 0};
  executable->peak = 128;
  pass->executable = std::move(executable);
  pass->budget = 1 << 20;
  pass->met = met;
  pass->measured = RecordedPass::measurements;
  return pass;
}

TEST(Recording, IsUnmonitoredUnderAPlanThatEvictsNothingAndFollowsItNowAndThen) {
  using Kind = ExecutablePlan::Step::Kind;
  const Arbiter lock;
  const auto context = std::make_shared<RecordingContext>(SessionOptions());
  const auto begun = [&](Bytes budget, int met, Kind what) {
    context->budgets(std::array{budget});
    return std::make_unique<Recording>(context, planned(met, what), true);
  };
  const Bytes much = Bytes{1} << 40;
  const auto normal = begun(much, 1, Kind::end);
  EXPECT_TRUE(normal->is_unmonitored());
  EXPECT_FALSE(normal->plan() || normal->journal().measuring_other());
  const auto measured = begun(much, 16, Kind::end);
  EXPECT_TRUE(measured->plan() && measured->journal().measuring_other()) << "so that other bytes are seen to grow";
  EXPECT_FALSE(measured->is_unmonitored());
  EXPECT_TRUE(begun(much, 1, Kind::drop)->plan()) << "it evicts something";
  normal->drop_plan();
  EXPECT_FALSE(normal->is_unmonitored());
}

// A recording that may evict, with a tensor from outside and one operator on it that has run.
class ValuesTest : public ::testing::Test {
 protected:
  ValuesTest() {
    context->allow_evicting();
    recording = std::make_shared<Recording>(context, two());
    recording->adopt_from_outside(outside, x);
    values().provenance().use(outside);
    values().bind(libtorch::storage_of(y), made);
    recording->cursor().advance();
  }

  static std::shared_ptr<Recipes> two() {
    MadePass pass;
    const Id a = pass.outside(4 * 1024 + 64);
    (void)pass.run({a}, 4 * 1024 + 64);
    return std::make_shared<Recipes>(pass.recipes());
  }

  [[nodiscard]] Values& values() { return recording->values(); }
  [[nodiscard]] SavedTensor saved(const at::Tensor& tensor) const {
    SavedTensor result;
    result.view = View(tensor);
    return result;
  }

  const Arbiter lock;
  at::Tensor x = at::ones({1024}), y = at::full({1024}, 2.0f);
  const Id outside = 0, made = 1;
  std::shared_ptr<RecordingContext> context = std::make_shared<RecordingContext>(SessionOptions{});
  std::shared_ptr<Recording> recording;
};

TEST_F(ValuesTest, AreFoundByTheirStorageAsLongAsTheRecordingLives) {
  EXPECT_EQ(values().bindings().find(libtorch::storage_of(y)), made);
  EXPECT_EQ(Recordings::of_process().all().size(), 1u);
  recording.reset();
  EXPECT_EQ(meter::header_of(*libtorch::storage_of(y))->tag.recording, 0u);
  EXPECT_TRUE(Recordings::of_process().all().empty());
}

TEST_F(ValuesTest, AreFoundByEachRecordingThatTheStorageIsBoundIn) {
  const auto another = std::make_shared<Recording>(context, two());
  another->values().bind(libtorch::storage_of(y), made);
  EXPECT_EQ(another->values().bindings().find(libtorch::storage_of(y)), made);
  EXPECT_EQ(values().bindings().find(libtorch::storage_of(y)), made);
}

TEST_F(ValuesTest, FromOutsideAreKeptAndOthersAreNot) {
  EXPECT_TRUE(values().kept(outside));
  EXPECT_FALSE(values().kept(made));
  EXPECT_TRUE(values().held_by_program(made));
  y = at::Tensor();
  EXPECT_FALSE(values().resident(made));
  EXPECT_TRUE(values().recomputable(made));
  EXPECT_FALSE(values().recomputable(outside));
}

TEST_F(ValuesTest, ThatAreSavedAreKeptUntilTheyAreEvicted) {
  SavedTensor tensor = saved(y);
  attach(*recording, tensor, made, libtorch::storage_of(y));
  y = at::Tensor();
  EXPECT_TRUE(values().resident(made));
  EXPECT_TRUE(values().provenance().needed(outside));
  EXPECT_TRUE(tensor.fingerprint.empty());
  values().evict(made);
  EXPECT_FALSE(values().kept(made));
  EXPECT_FALSE(tensor.fingerprint.empty());
  detach(*recording, tensor);
  EXPECT_TRUE(values().pending().is_over());
}

TEST_F(ValuesTest, ThatArePackedComeBackAsTheyWere) {
  values().keep(made, libtorch::share(libtorch::storage_of(y)));
  const auto form = form_of_contents(*libtorch::storage_of(y), at::kFloat);
  ASSERT_TRUE(form);
  EXPECT_TRUE(values().pack(made, *form));
  EXPECT_LT(values().copies(made).packed()->bytes(), values().bytes(made));
  const c10::Storage back = values().copies(made).packed()->contents();
  ASSERT_EQ(back.nbytes(), y.storage().nbytes());
  EXPECT_EQ(std::memcmp(back.data(), y.storage().data(), back.nbytes()), 0);
  values().release(made);
  EXPECT_FALSE(values().copies(made).packed());
}

TEST_F(ValuesTest, AreCopiedBeforeTheProgramOverwritesWhatARecipeNeeds) {
  SavedTensor tensor = saved(y);
  attach(*recording, tensor, made, libtorch::storage_of(y));
  EXPECT_TRUE(values().would_copy(outside));
  values().replace(outside, x.clone().storage());
  EXPECT_EQ(values().provenance().availability(outside), saved_copy);
  EXPECT_FALSE(values().would_copy(outside));
  values().unbind(libtorch::storage_of(x), outside);
  EXPECT_TRUE(values().kept(outside));
  values().lose(outside, lost);
  EXPECT_EQ(values().provenance().availability(outside), saved_copy);
  detach(*recording, tensor);
}

TEST_F(ValuesTest, AreNotCopiedIfNothingThatIsMadeOfThemIsSaved) {
  EXPECT_FALSE(values().would_copy(outside));
}

TEST_F(ValuesTest, MadeOfALostOneAreKeptIfTheyAreThere) {
  values().lose(outside, lost_no_room);
  EXPECT_EQ(values().provenance().availability(outside), lost_no_room);
  EXPECT_EQ(values().provenance().availability(made), recipe_broken);
  EXPECT_TRUE(values().kept(made));
  EXPECT_FALSE(values().recomputable(made));
  values().lose(outside, lost);
  EXPECT_EQ(values().provenance().availability(outside), lost_no_room);
}

TEST_F(ValuesTest, WrittenByOthersTakeTheirSavedTensorsAlongIfNoCounterSawIt) {
  SavedTensor tensor = saved(y);  // without a version: nobody sees writes
  attach(*recording, tensor, made, libtorch::storage_of(y));
  after_write(*recording, libtorch::storage_of(y), libtorch::Version());
  EXPECT_NE(tensor.value, made);
  EXPECT_EQ(values().bindings().find(libtorch::storage_of(y)), tensor.value);
  detach(*recording, tensor);
}

// ---- memory that the program frees ----

void resize(const at::Tensor& tensor, std::size_t bytes) {
  at::native::resize_bytes_cpu(libtorch::storage_of(tensor), bytes);
}

TEST_F(ValuesTest, FreedByTheProgramAreEmptiedUntilTheSameContentsAreBack) {
  SavedTensor tensor = saved(x);  // backward asks for it: so it will be back
  attach(*recording, tensor, outside, libtorch::storage_of(x));
  EXPECT_TRUE(values().has_contents(outside));
  resize(x, 0);
  EXPECT_TRUE(values().is_emptied(outside));
  EXPECT_FALSE(values().has_contents(outside));
  EXPECT_EQ(values().bindings().find(libtorch::storage_of(x)), no_value);
  resize(x, 4096);
  x.fill_(3);
  EXPECT_FALSE(values().has_contents(outside));
  x.fill_(1);
  EXPECT_TRUE(values().has_contents(outside));
  resize(x, 0);
  EXPECT_FALSE(values().has_contents(outside));
  detach(*recording, tensor);
}

TEST_F(ValuesTest, ThatTheProgramHasAreKeptPastWhatIsEmptied) {
  SavedTensor tensor = saved(x);
  attach(*recording, tensor, outside, libtorch::storage_of(x));
  resize(x, 0);
  EXPECT_TRUE(recording->cursor().info(made).must_keep_past_inputs);
  EXPECT_FALSE(values().recomputable(made));
  y = at::Tensor();
  values().evict(made);
  EXPECT_TRUE(values().kept(made));
  values().release(made);
  EXPECT_TRUE(values().release_outlasting());
  EXPECT_FALSE(values().kept(made));
  detach(*recording, tensor);
}

TEST_F(ValuesTest, ThatTheProgramHasNoLongerAreRecomputedWhenWhatWasEmptiedIsBack) {
  SavedTensor tensor = saved(x);
  attach(*recording, tensor, outside, libtorch::storage_of(x));
  y = at::Tensor();
  resize(x, 0);
  EXPECT_TRUE(values().recomputable(made));
  EXPECT_FALSE(recording->cursor().info(made).must_keep_past_inputs);
  detach(*recording, tensor);
}

TEST_F(ValuesTest, FreedForGoodAreAdoptedIfARecipeNeedsThem) {
  SavedTensor tensor = saved(y);
  attach(*recording, tensor, made, libtorch::storage_of(y));
  const Bytes live = meter::live();
  resize(x, 0);
  EXPECT_EQ(meter::live(), live);
  EXPECT_EQ(values().provenance().availability(outside), saved_copy);
  EXPECT_EQ(values().kept(outside).nbytes(), 4096u);
  EXPECT_EQ(static_cast<const float*>(values().kept(outside).data())[1023], 1);
  detach(*recording, tensor);
}

TEST_F(ValuesTest, MovedElsewhereAreThereIfTheirContentsWereTakenAlong) {
  resize(x, 8192);
  EXPECT_TRUE(values().has_contents(outside));
  static_cast<float*>(libtorch::storage_of(x)->mutable_data())[5] = 7;
  EXPECT_TRUE(values().has_contents(outside));  // it was compared
  EXPECT_TRUE(values().recomputable(made));
}

TEST_F(ValuesTest, AreNumberedAnewWhenTheirRecipesAreLeft) {
  const at::Tensor z = at::zeros({16});
  const Id later = look_up(*recording, z);
  SavedTensor tensor = saved(z);
  attach(*recording, tensor, later, libtorch::storage_of(z));
  values().renumber(2, 1);  // as if the recipes had lost their last value
  EXPECT_EQ(tensor.value, later - 1);
  EXPECT_EQ(values().bindings().find(libtorch::storage_of(z)), later - 1);
  detach(*recording, tensor);
}

}  // namespace
}  // namespace reprise::testing
