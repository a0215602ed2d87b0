// Sizes that are expressions: what is known of them, kernels and graphs by
// them.
#include <taeda/csrc/compiler/graph/compiled.h>
#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/fuse.h>
#include <taeda/csrc/compiler/loops/print.h>
#include <taeda/csrc/compiler/loops/spaces.h>
#include <taeda/taeda.h>

#include <gtest/gtest.h>

namespace taeda::compiler {
namespace {

class GraphSizes : public testing::Test {
 protected:
  IntrusivePtr<ShapeEnv> env_ = make_intrusive<ShapeEnv>();
  SymInt a_ = env_->create_size(6, "a", DynamicSize::Marked);
  SymInt b_ = env_->create_size(6, "b", DynamicSize::Marked);
};

TEST_F(GraphSizes, AreTheSameWhereTheSymbolsDoNotMatter) {
  EXPECT_TRUE(same(a_ * 2, a_ + a_));
  EXPECT_TRUE(same(SymInt(3), SymInt(3)));
  EXPECT_FALSE(same(a_, b_));  // as far as is known, though both are 6
  EXPECT_FALSE(same(a_, 6));
  EXPECT_FALSE(same(a_, 1));
  EXPECT_TRUE(env_->guards().empty());
}

TEST_F(GraphSizes, QuotientsLeaveNothing) {
  ASSERT_TRUE(quotient(a_ * 12, 4));
  EXPECT_TRUE(same(*quotient(a_ * 12, 4), a_ * 3));
  ASSERT_TRUE(quotient(a_ * b_, b_));
  EXPECT_TRUE(same(*quotient(a_ * b_, b_), a_));
  EXPECT_FALSE(quotient(a_, 2));
  EXPECT_FALSE(quotient(a_, b_));
  EXPECT_FALSE(quotient(7, 2));
  EXPECT_TRUE(env_->guards().empty());
}

TEST_F(GraphSizes, ATableKeepsEqualExpressionsOnce) {
  SizeTable table({a_, b_});
  std::vector<SymInt> list{a_ * 2, 5, a_ + a_, b_ / 4};
  SizeList sizes(list, table);
  SizeNumbers values;
  int64_t symbols[] = {7, 9};
  table.run(symbols, values);
  EXPECT_EQ(values.size(), 2u);
  DimVector room;
  EXPECT_EQ(sizes.in(values.data(), room), IntArrayRef({14, 5, 14, 2}));
}

TEST_F(GraphSizes, ATableTellsDivisionsByZero) {
  SizeTable table({a_, b_});
  table.place(a_ / (b_ - 2));
  SizeNumbers values;
  int64_t symbols[] = {7, 2};
  EXPECT_FALSE(table.try_run(symbols, values));
  EXPECT_THROW(table.run(symbols, values), Error);
}

TEST_F(GraphSizes, ArgumentsGetTheirIntegers) {
  SizeTable table({a_, b_});
  std::vector<IValue> arguments{
      a_, std::vector<SymInt>{b_, 3, a_ * b_}, std::vector<int64_t>{1}, true};
  SizeArguments expressions(arguments, table);
  SizeNumbers values;
  int64_t symbols[] = {2, 5};
  table.run(symbols, values);
  expressions.put(arguments, values.data());
  EXPECT_EQ(arguments[0].get<int64_t>(), 2);
  EXPECT_EQ(arguments[1].get<std::vector<int64_t>>(),
            (std::vector<int64_t>{5, 3, 10}));
}

TEST_F(GraphSizes, AxesArePartedByExpressionsThatDivideThem) {
  loops::Spaces s;
  int whole = s.axis(a_ * 64), outer = s.axis(a_), inner = s.axis(64);
  s.set(0, {{whole}});
  s.set(1, {{outer}, {inner}});
  ASSERT_TRUE(s.unify({whole}, {outer, inner}));
  EXPECT_EQ(s.dims(0)[0].size(), 2u);
  int x = s.axis(a_), y = s.axis(b_);
  EXPECT_FALSE(s.unify({x}, {y}));
}

loops::KernelText doubled(const SymInt& rows, const SymInt& columns) {
  loops::Program p;
  p.axis(rows, false);
  p.axis(columns, false);
  int in = p.buffer(kFloat, false), out = p.buffer(kFloat, true);
  loops::Var v = p.load(in, {0, {columns, 1}});
  p.store(v, out, {0, {columns, 1}});
  return loops::kernel_text(p, loops::schedule(p));
}

TEST_F(GraphSizes, TextsOfKernelsNameNoSymbols) {
  loops::KernelText one = doubled(a_, b_), other = doubled(b_, a_ * 2);
  EXPECT_EQ(one.text, other.text);
  EXPECT_FALSE(one.numbers.empty());
  EXPECT_TRUE(doubled(30, 40).numbers.empty());
  EXPECT_NE(doubled(30, 40).text, doubled(30, 50).text);
}

// A graph of tensors of a_ rows, for all of these rows.
void check_for_rows(const std::function<Tensor(const Tensor&)>& function,
                    const SymInt& rows,
                    const IntrusivePtr<ShapeEnv>& env,
                    bool grad) {
  SymbolicInputs symbolic{env, {rows}, {{{{rows, 32}, {32, 1}}}}};
  Program program = [&](std::span<const TensorBase> given) {
    return std::vector<TensorBase>{function(Tensor(given[0]))};
  };
  CompileOptions options;
  options.fuse = [](Graph& graph) { fuse(graph, {.blocking = true}); };
  auto leaf = [&](int64_t n) {
    Tensor x = randn({n, 32});
    return grad ? x.requires_grad_() : x;
  };
  std::vector<TensorBase> first{leaf(6)};
  auto compiled =
      make_intrusive<CompiledProgram>(program, first, options, &symbolic);
  EXPECT_TRUE(env->guards().empty());
  for (int64_t n : {2, 3, 7, 64}) {
    Tensor x = leaf(n);
    std::vector<TensorBase> inputs{x};
    int64_t symbols[] = {n};
    ASSERT_TRUE(compiled->fits(inputs, symbols));
    Tensor found(compiled->call(inputs, symbols)[0]), expected = function(x);
    EXPECT_TRUE(allclose(found, expected, 1e-5, 1e-5));
    if (!grad) continue;
    Tensor weights = randn(found.sizes());
    (found * weights).sum().backward();
    Tensor ours = x.grad().clone();
    (expected * weights).sum().backward();
    EXPECT_TRUE(allclose(ours * 2, x.grad(), 1e-4, 1e-5));
  }
  int64_t other[] = {5};
  EXPECT_FALSE(compiled->fits({first.data(), 1}, other));
  int64_t one[] = {1};
  std::vector<TensorBase> row{leaf(1)};
  EXPECT_FALSE(compiled->fits(row, one));
}

TEST_F(GraphSizes, OneGraphServesAllRows) {
  auto chain = [](const Tensor& x) { return tanh(x * 2) + x; };
  check_for_rows(chain, a_, env_, /*grad=*/false);
  check_for_rows(chain, b_, env_, /*grad=*/true);
}

TEST_F(GraphSizes, ReductionsRunAlongExpressions) {
  auto rows = [](const Tensor& x) { return softmax(x * 2, 0) * 3; };
  check_for_rows(rows, a_, env_, /*grad=*/false);
  auto columns = [](const Tensor& x) { return softmax(x * 2, 1) * 3; };
  check_for_rows(columns, b_, env_, /*grad=*/true);
}

TEST_F(GraphSizes, AGuardOfTheTraceBoundsItsGraph) {
  SymbolicInputs symbolic{env_, {a_}, {{{{a_, 32}, {32, 1}}}}};
  Program program = [&](std::span<const TensorBase> given) {
    Tensor x(given[0]);
    bool many = a_ > SymInt(4);  // the env's decision
    return std::vector<TensorBase>{many ? x * 2 : x * 3};
  };
  std::vector<TensorBase> first{randn({6, 32})};
  auto compiled = make_intrusive<CompiledProgram>(
      program, first, CompileOptions(), &symbolic);
  for (int64_t n : {3, 4, 5, 60}) {
    std::vector<TensorBase> inputs{randn({n, 32})};
    int64_t symbols[] = {n};
    EXPECT_EQ(compiled->fits(inputs, symbols), n > 4);
  }
}

}  // namespace
}  // namespace taeda::compiler
