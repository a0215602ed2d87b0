#include "helpers.h"

#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/view.h>
#include <taeda/gen/ops/zeros.h>

namespace taeda::autograd {
namespace {
using Values = std::vector<float>;

TEST(Inplace, ChangesTheHistory) {
  Tensor x = tensor({1, 2}, true);
  Tensor y = ops::clone(x);
  ops::mul_(y, x);
  backward({ops::sum(y)});
  EXPECT_EQ(values(grad_of(x)), Values({2, 4}));
}

TEST(Inplace, LeavesAreProtected) {
  Tensor x = tensor({1, 2}, true);
  expect_error(error_of([&] { ops::mul_(x, x); }),
               "a leaf Variable that requires grad is being used in an "
               "in-place operation.");
  Tensor view = ops::view(x, {2});
  expect_error(error_of([&] { ops::mul_(view, x); }),
               "a view of a leaf Variable that requires grad is being used in "
               "an in-place operation.");
  GradModeGuard off(false);
  ops::mul_(x, x);
  EXPECT_EQ(values(x), Values({1, 4}));
}

TEST(Inplace, SavedTensorsAreChecked) {
  Tensor x = tensor({1, 2}, true);
  Tensor y = ops::mul(x, tensor({2}));
  Tensor z = ops::sum(y);
  ops::add_(y, tensor({1}));
  std::string text = error_of([&] { backward({z}, {}, true); });
  EXPECT_EQ(text, "no error");  // sum saves sizes alone
  Tensor w = ops::mul(y, y);
  ops::add_(y, tensor({1}));
  text = error_of([&] { backward({ops::sum(w)}); });
  expect_error(text, "modified by an inplace operation");
  expect_error(text, "[2]");
  expect_error(text, "is at version 2; expected version 1");
  expect_error(text, "saved for MulBackward0");
}

TEST(Inplace, OnAViewReachesTheBase) {
  Tensor w = tensor({5}, true);
  Tensor x = ops::zeros(IntArrayRef({3}));
  ops::copy_(x, tensor({1, 2, 3}));
  Tensor first = ops::as_strided(x, {1}, {1}, 0);
  ops::mul_(first, w);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_EQ(grad_fn(x)->name(), "CopySlices");
  EXPECT_EQ(grad_fn(first)->name(), "AsStridedBackward0");
  backward({ops::sum(x)});
  EXPECT_EQ(values(grad_of(w)), Values({1}));
}

TEST(Inplace, OnAViewOfAResult) {
  Tensor a = tensor({1, 2, 3}, true), w = tensor({10}, true);
  Tensor x = ops::mul(a, a);
  Tensor other = ops::as_strided(x, {1}, {1}, 1);
  Tensor last = ops::as_strided(x, {1}, {1}, 2);
  ops::mul_(last, w);
  Tensor sum = ops::add(ops::sum(x), ops::sum(other));
  backward({sum});
  EXPECT_EQ(values(grad_of(a)), Values({2, 8, 60}));
  EXPECT_EQ(values(grad_of(w)), Values({9}));
}

TEST(Inplace, OtherViewsFollowTheirBase) {
  Tensor w = tensor({5}, true);
  Tensor x = ops::clone(tensor({1, 2, 3}));
  Tensor all = ops::as_strided(x, {3}, {1}, 0);
  Tensor first = ops::as_strided(x, {1}, {1}, 0);
  EXPECT_FALSE(all.requires_grad());
  ops::mul_(first, w);
  EXPECT_TRUE(all.requires_grad());
  EXPECT_EQ(grad_fn(all)->name(), "AsStridedBackward0");
  // Not recorded but for the base: no other operand requires grad.
  backward({ops::sum(ops::mul(all, tensor({2})))});
  EXPECT_EQ(values(grad_of(w)), Values({2}));
}

TEST(Inplace, DoubleBackwardThroughAView) {
  Tensor a = tensor({2, 3}, true);
  Tensor x = ops::mul(a, a);
  Tensor last = ops::as_strided(x, {1}, {1}, 1);
  ops::mul_(last, ops::as_strided(a, {1}, {1}, 1));  // x = [a0^2, a1^3]
  Tensor g = grad({ops::sum(x)}, {a}, {}, true, true)[0];
  EXPECT_EQ(values(g), Values({4, 27}));
  Tensor gg = grad({ops::sum(g)}, {a})[0];
  EXPECT_EQ(values(gg), Values({2, 18}));
}

TEST(Inplace, CopyIntoASlice) {
  Tensor a = tensor({1, 2}, true), b = tensor({3}, true);
  Tensor x = ops::mul(a, a);
  ops::copy_(ops::as_strided(x, {1}, {1}, 0), b);
  backward({ops::sum(x)});
  EXPECT_EQ(values(grad_of(a)), Values({0, 4}));
  EXPECT_EQ(values(grad_of(b)), Values({1}));
}

TEST(Inplace, NoGradViewsAreRefused) {
  Tensor a = tensor({1, 2}, true);
  Tensor x = ops::mul(a, a), view;
  {
    GradModeGuard off(false);
    view = ops::view(x, {2});
  }
  expect_error(error_of([&] { ops::mul_(view, a); }),
               "A view was created in no_grad mode");
}

TEST(Inplace, RetainedGradMovesAlong) {
  Tensor a = tensor({1, 2}, true);
  Tensor x = ops::mul(a, a);
  retain_grad(x);
  ops::mul_(x, tensor({3}));
  backward({ops::sum(x)});
  EXPECT_EQ(values(grad_of(x)), Values({1, 1}));
  EXPECT_EQ(values(grad_of(a)), Values({6, 12}));
}

TEST(Inplace, OutFormsTakeNoPart) {
  Tensor a = tensor({1, 2}, true), out = tensor({0, 0});
  expect_error(error_of([&] { ops::add_out(a, a, 1, out); }),
               "functions with out=... arguments don't support automatic "
               "differentiation");
}

TEST(Inplace, DetachedTensorsStayOutside) {
  Tensor a = tensor({1, 2}, true);
  Tensor d = detach(a);
  EXPECT_FALSE(d.requires_grad());
  ops::mul_(d, tensor({2}));
  EXPECT_EQ(values(a), Values({2, 4}));
  EXPECT_EQ(a.version(), 1u);
  Tensor own = variable_data(a);
  ops::mul_(own, tensor({2}));
  EXPECT_EQ(a.version(), 1u);
}

}  // namespace
}  // namespace taeda::autograd
