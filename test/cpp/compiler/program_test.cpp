// The grammar of loop programs: what is illegal cannot be built.
#include <taeda/aten/parallel/parallel.h>
#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/schedule.h>

#include <gtest/gtest.h>

namespace taeda::compiler::loops {
namespace {

Place at(std::vector<SymInt> strides) { return {0, std::move(strides)}; }

Fold sum(Program& p) {
  expr::Graph& g = p.expressions;
  expr::Id both = g.binary(expr::BinaryOp::Add, g.name("a"), g.name("b"));
  return {g.integer(0), both, g.name("acc")};
}

TEST(LoopProgram, OperandsComeBeforeAndHaveTheType) {
  Program p;
  p.axis(8, false);
  int in = p.buffer(kFloat, false), bits = p.buffer(kLong, false);
  Var x = p.load(in, at({1})), n = p.load(bits, at({1}));
  expr::Id id = p.expressions.name(Program::name_of(x));
  EXPECT_THROW(p.compute(Compute::F32, Compute::F32, id, {7}), Error);
  EXPECT_THROW(p.compute(Compute::F32, Compute::F32, id, {n}), Error);
  EXPECT_THROW(p.gather(in, 0, x), Error);
  EXPECT_NO_THROW(p.compute(Compute::F32, Compute::F32, id, {x}));
}

TEST(LoopProgram, ExpressionsNameTheirOperandsOnly) {
  Program p;
  p.axis(8, false);
  Var x = p.load(p.buffer(kFloat, false), at({1}));
  expr::Id other = p.expressions.name("y");
  EXPECT_THROW(p.compute(Compute::F32, Compute::F32, other, {x}), Error);
}

TEST(LoopProgram, PlacesNameAStrideForEachAxisAndTheRightBuffer) {
  Program p;
  p.axis(8, false);
  int in = p.buffer(kFloat, false), out = p.buffer(kFloat, true);
  EXPECT_THROW(p.load(in, at({})), Error);
  EXPECT_THROW(p.load(out, at({1})), Error);
  EXPECT_THROW(p.load(5, at({1})), Error);
  Var x = p.load(in, at({1}));
  EXPECT_THROW(p.store(x, in, at({1})), Error);
  EXPECT_THROW(p.store(x, out, at({0})), Error);  // misses the axis
  EXPECT_NO_THROW(p.store(x, out, at({1})));
}

TEST(LoopProgram, BoundsHaveAStepForEachAxisAndDoNotFall) {
  Program p;
  p.axis(8, false);
  int in = p.buffer(kFloat, false), out = p.buffer(kFloat, true);
  expr::Literal zero = expr::Literal::of(0.0);
  auto load = [&](std::vector<int64_t> steps, int64_t size) {
    return p.load(in, at({0}), {{-1, std::move(steps), size, 1}}, zero, 8);
  };
  EXPECT_THROW(load({}, 8), Error);
  EXPECT_THROW(load({-1}, 8), Error);
  EXPECT_THROW(load({1}, 0), Error);
  Var x = load({1}, 8);
  EXPECT_EQ(x, load({1}, 8));  // one load
  EXPECT_NE(x, load({1}, 7));
  EXPECT_EQ(p[x].axes, axis_bit(0));
  EXPECT_TRUE(same(p[x].step(0), 1));
  EXPECT_TRUE(has_bounds(p));
  p.store(x, out, at({1}));
  EXPECT_FALSE(may_share(p, out, in));
}

TEST(LoopProgram, ReductionsNeedAnAxisAndTakeItAway) {
  Program none;
  none.axis(8, false);
  Var y = none.load(none.buffer(kFloat, false), at({1}));
  EXPECT_THROW(none.reduce(y, Compute::F32, sum(none)), Error);
  Program p;
  p.axis(4, false);
  p.axis(8, true);
  Var x = p.load(p.buffer(kFloat, false), at({8, 1}));
  Var total = p.reduce(x, Compute::F32, sum(p));
  EXPECT_EQ(p[x].axes, 3u);
  EXPECT_EQ(p[total].axes, 1u);
}

TEST(LoopProgram, AxesOfOneElementAreNone) {
  Program p;
  EXPECT_THROW(p.axis(1, false), Error);
}

TEST(LoopProgram, AxesThatLieBehindEachOtherBecomeOne) {
  Program p;
  p.axis(3, false);
  p.axis(5, false);
  p.axis(7, true);
  int in = p.buffer(kFloat, false), out = p.buffer(kFloat, true);
  Var x = p.load(in, at({35, 7, 1}));
  p.store(p.reduce(x, Compute::F32, sum(p)), out, at({5, 1, 0}));
  p.join_axes();
  EXPECT_EQ(p.sizes(), (std::vector<SymInt>{15, 7}));
  EXPECT_EQ(p.reduced(), 2u);
  EXPECT_EQ(p[x].place.strides, (std::vector<SymInt>{7, 1}));
}

TEST(LoopProgram, AResultMayLieWhereItsElementIsRead) {
  Program p;
  p.axis(8, false);
  p.axis(8, false);
  int same = p.buffer(kFloat, false), turned = p.buffer(kFloat, false);
  int both = p.buffer(kFloat, false), other = p.buffer(kDouble, false);
  int out = p.buffer(kFloat, true);
  Var x = p.load(same, at({8, 1}));
  p.load(turned, at({1, 8}));
  p.load(both, at({8, 1}));
  p.load(both, at({0, 1}));
  p.load(other, at({8, 1}));
  EXPECT_FALSE(may_share(p, out, same));  // nothing is written yet
  p.store(x, out, at({8, 1}));
  EXPECT_TRUE(may_share(p, out, same));
  EXPECT_FALSE(may_share(p, out, turned));
  EXPECT_FALSE(may_share(p, out, both));
  EXPECT_FALSE(may_share(p, out, other));
  EXPECT_FALSE(may_share(p, same, out));
}

TEST(LoopProgram, AResultBehindASumLiesApart) {
  Program p;
  p.axis(8, true);
  int in = p.buffer(kFloat, false), out = p.buffer(kFloat, true);
  Var x = p.load(in, at({1}));
  p.reduce(x, Compute::F32, sum(p));
  p.store(x, out, at({1}));
  EXPECT_FALSE(may_share(p, out, in));
}

TEST(LoopSchedule, RowsAndColumnsByTheStepsInMemory) {
  for (bool row : {true, false}) {
    Program p;
    p.axis(64, !row);
    p.axis(128, row);
    int in = p.buffer(kFloat, false), out = p.buffer(kFloat, true);
    Var x = p.load(in, at({128, 1}));
    Var total = p.reduce(x, Compute::F32, sum(p));
    p.store(total, out, row ? at({1, 0}) : at({0, 1}));
    Schedule s = schedule(p);
    EXPECT_EQ(s.vector, 1u);
    EXPECT_EQ(s.columns, !row);
    EXPECT_EQ(s.passes, 1);
    EXPECT_EQ(s.outer_count(p), row ? 64 : 1);
  }
}

// Pixels of a grid of twice the width: x[i / 2] at 2 * (i / 2) + i % 2.
TEST(LoopSchedule, AResultOfAFinerGridIsWoven) {
  auto planned = [](int64_t between, int64_t step) {
    Program p;
    p.axis(5, false);
    p.axis(32, false);
    p.axis(between, false);
    int in = p.buffer(kFloat, false), out = p.buffer(kFloat, true);
    Var x = p.load(in, at({32, 1, 0}));
    p.store(x, out, at({32 * step, step, 1}));
    return schedule(p);
  };
  Schedule s = planned(2, 2);
  EXPECT_EQ(s.vector, 1u);
  EXPECT_EQ(s.woven, 2u);
  EXPECT_EQ(s.outer, std::vector<size_t>{0});
  EXPECT_EQ(planned(5, 5).woven, Schedule::kNone);  // more than few
  EXPECT_EQ(planned(2, 3).woven, Schedule::kNone);  // something else between
}

// exp(x) / sum(exp(x)): the exponentials are kept, x is loaded once.
TEST(LoopSchedule, ColumnsAreSharedByThreadsAndElseTakenWhole) {
  auto block = [](int threads, int64_t columns) {
    int before = get_num_threads();
    set_num_threads(threads);
    Program p;
    p.axis(1024, true);
    p.axis(columns, false);
    int in = p.buffer(kFloat, false), out = p.buffer(kFloat, true);
    Var x = p.load(in, at({columns, 1}));
    p.store(p.reduce(x, Compute::F32, sum(p)), out, at({0, 1}));
    Schedule s = schedule(p);
    set_num_threads(before);
    return s.block;
  };
  EXPECT_EQ(block(1, 768), 0);  // all of them
  EXPECT_EQ(block(2, 768), 512);
  EXPECT_EQ(block(16, 768), 256);
  EXPECT_EQ(block(1, 5000), 2048);
}

TEST(LoopSchedule, CostlyValuesOfAnEarlierPassAreKept) {
  Program p;
  p.axis(4, false);
  p.axis(32, true);
  expr::Graph& g = p.expressions;
  Var x = p.load(p.buffer(kFloat, false), at({32, 1}));
  expr::Id e = g.call(expr::find_function("exp"), {g.name("v0")});
  Var y = p.compute(Compute::F32, Compute::F32, e, {x});
  Var total = p.reduce(y, Compute::F32, sum(p));
  expr::Id q = g.binary(expr::BinaryOp::Div, g.name("v1"), g.name("v2"));
  Var out = p.compute(Compute::F32, Compute::F32, q, {y, total});
  p.store(out, p.buffer(kFloat, true), at({32, 1}));
  Schedule s = schedule(p);
  EXPECT_EQ(s.passes, 2);
  EXPECT_TRUE(s.kept[static_cast<size_t>(y)]);
  EXPECT_FALSE(s.kept[static_cast<size_t>(x)]);
  EXPECT_EQ(s.stage[static_cast<size_t>(out)], 1);
}

}  // namespace
}  // namespace taeda::compiler::loops
