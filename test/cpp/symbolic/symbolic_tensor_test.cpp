// Tensors whose sizes are symbols: reading integers is a guard, rules are not.
#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>

#include <gtest/gtest.h>

namespace taeda {
namespace {

struct SymbolicTensor : testing::Test {
  IntrusivePtr<ShapeEnv> env = make_intrusive<ShapeEnv>();
  SymInt n = env->create_size(8, "n", DynamicSize::Duck);
  TensorBase x =
      make_symbolic_tensor({n, SymInt(3)}, ArrayRef<SymInt>(), kFloat);
};

TEST_F(SymbolicTensor, ReadingIntegersFixesSymbols) {
  EXPECT_TRUE(x.is_meta());
  EXPECT_EQ(x.dim(), 2);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_TRUE(env->guards().empty());
  EXPECT_EQ(x.size(1), 3);
  EXPECT_TRUE(env->guards().empty());
  EXPECT_EQ(x.sizes(), IntArrayRef({8, 3}));
  ASSERT_EQ(env->guards().size(), 1U);
  EXPECT_EQ(env->expressions().text(env->guards()[0].condition), "Eq(s0, 8)");
}

TEST_F(SymbolicTensor, NumelIsAGuardToo) {
  EXPECT_EQ(x.numel(), 24);
  EXPECT_EQ(env->guards().size(), 1U);
}

TEST_F(SymbolicTensor, OperatorsKeepSymbols) {
  TensorBase y = ops::add(ops::transpose(x, 0, 1), Scalar(1), Scalar(1));
  EXPECT_EQ(str_cat(sym_sizes(*y.impl())), "[3, s0]");
  EXPECT_EQ(str_cat(sym_strides(*y.impl())), "[1, 3]");
  TensorBase z = ops::sum(y, IntArrayRef({0}), false, std::nullopt);
  EXPECT_EQ(str_cat(sym_sizes(*z.impl())), "[s0]");
  EXPECT_TRUE(env->guards().empty());
  EXPECT_TRUE(take_symbolic_fallbacks().empty());
}

TEST_F(SymbolicTensor, CopiesAndNewSizes) {
  TensorBase copy(x.impl()->shallow_copy(/*share_version=*/false));
  EXPECT_TRUE(copy.impl()->is_symbolic());
  copy.impl()->set_sizes_contiguous({2, 2});
  EXPECT_FALSE(copy.impl()->is_symbolic());
  EXPECT_FALSE(copy.keys().has(DispatchKey::Symbolic));
  EXPECT_EQ(copy.numel(), 4);
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(SymbolicTensor, ErrorsShowSymbols) {
  SymInt m = env->create_size(5, "m", DynamicSize::Duck);
  TensorBase y =
      make_symbolic_tensor({m, SymInt(3)}, ArrayRef<SymInt>(), kFloat);
  try {
    ops::add(x, y, Scalar(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("(s0) must match the size of tensor b (s1)"),
              std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace taeda
