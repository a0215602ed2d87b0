#include <taeda/taeda.h>

#include "../errors.h"

namespace taeda {
namespace {

using autograd::AutogradContext;
using autograd::variable_list;

Tensor numbers(std::vector<float> list, bool requires_grad = false) {
  Tensor t = make_tensor(
      "test", IntArrayRef({static_cast<int64_t>(list.size())}), kFloat);
  std::copy(list.begin(), list.end(), t.data_ptr<float>());
  return t.set_requires_grad(requires_grad);
}
std::vector<float> values(const Tensor& t) {
  Tensor c = t.contiguous();
  return {c.data_ptr<float>(), c.data_ptr<float>() + c.numel()};
}
using Values = std::vector<float>;

struct ScaledCube : autograd::Function<ScaledCube> {
  static Tensor forward(AutogradContext* ctx, Tensor x, double scale) {
    EXPECT_FALSE(grad_enabled());
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    return x * x * x * scale;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    Tensor x = ctx->get_saved_variables()[0];
    double scale = ctx->saved_data["scale"].to_double();
    return {grads[0] * x * x * (3 * scale), Tensor()};
  }
};

TEST(Function, HasItsOwnDerivative) {
  Tensor x = numbers({1, 2}, true);
  Tensor y = ScaledCube::apply(x, 2.0);
  EXPECT_EQ(values(y.detach()), Values({2, 16}));
  EXPECT_EQ(autograd::grad_fn(y)->name().substr(0, 8), "taeda::(");
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), Values({6, 24}));
  expect_throws(
      ErrorKind::Runtime, "a second time", [&] { y.sum().backward(); });
}

TEST(Function, IsDifferentiableTwice) {
  Tensor x = numbers({3}, true);
  Tensor y = ScaledCube::apply(x, 1.0);
  Tensor g = autograd::grad({y}, {x}, {}, true, true)[0];
  EXPECT_EQ(g.item<float>(), 27);
  EXPECT_EQ(Tensor(autograd::grad({g}, {x})[0]).item<float>(), 18);
}

TEST(Function, RecordsNothingWithoutNeed) {
  EXPECT_FALSE(ScaledCube::apply(numbers({1}), 1.0).requires_grad());
  Tensor x = numbers({1}, true);
  GradModeGuard off(false);
  EXPECT_FALSE(ScaledCube::apply(x, 1.0).requires_grad());
}

// Sum and difference; the gradient of an unused one arrives as zeros.
struct Pair : autograd::Function<Pair> {
  static variable_list forward(AutogradContext* ctx, Tensor a, Tensor b) {
    EXPECT_EQ(ctx->needs_input_grad(1), b.requires_grad());
    return {a + b, a - b};
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0] + grads[1], grads[0] - grads[1]};
  }
};

TEST(Function, SeveralResults) {
  Tensor a = numbers({1}, true), b = numbers({2});
  Pair::apply(a, b)[1].backward();
  EXPECT_EQ(values(a.grad()), Values({1}));
  Tensor c = numbers({2}, true);
  variable_list both = Pair::apply(a, c);
  (both[0] * 2 + both[1]).backward();
  EXPECT_EQ(values(a.grad()), Values({4}));
  EXPECT_EQ(values(c.grad()), Values({1}));
}

struct DoubleInPlace : autograd::Function<DoubleInPlace> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x *= 2;
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0] * 2};
  }
};

TEST(Function, InPlace) {
  Tensor x = numbers({1, 2}, true);
  Tensor y = x * x;
  Tensor z = DoubleInPlace::apply(y);
  EXPECT_TRUE(z.is_same(y));
  z.sum().backward();
  EXPECT_EQ(values(x.grad()), Values({4, 8}));
  expect_throws(ErrorKind::Runtime, "leaf", [&] { DoubleInPlace::apply(x); });
}

struct Identity : autograd::Function<Identity> {
  static Tensor forward(AutogradContext*, Tensor x) { return x; }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0] * 10};
  }
};

TEST(Function, ArgumentsThatPassThroughAreResultsOfTheCall) {
  Tensor x = numbers({1}, true);
  Tensor y = Identity::apply(x);
  EXPECT_FALSE(y.is_same(x));
  y.backward();
  EXPECT_EQ(values(x.grad()), Values({10}));
}

struct Wrong : autograd::Function<Wrong> {
  static Tensor forward(AutogradContext*, Tensor x, int64_t) { return x * 1; }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0]};
  }
};

TEST(Function, WrongNumberOfGradients) {
  Tensor y = Wrong::apply(numbers({1}, true), int64_t{1});
  expect_throws(ErrorKind::Runtime, "expected 2, got 1", [&] { y.backward(); });
}

TEST(Operators, NumbersOnEitherSide) {
  Tensor x = numbers({1, 4});
  EXPECT_EQ(values((1 - x / 2) * 2.0), Values({1, -2}));
  EXPECT_EQ(values(-x + 8 / x), Values({7, -2}));
  x -= 1;
  x += x;
  EXPECT_EQ(values(x), Values({0, 6}));
}

}  // namespace
}  // namespace taeda
