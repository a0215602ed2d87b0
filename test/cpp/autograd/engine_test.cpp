#include "helpers.h"

#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/view.h>

#include <cmath>
#include <thread>

namespace taeda::autograd {
namespace {
using Values = std::vector<float>;

TEST(Engine, ProductAndSum) {
  Tensor x = tensor({1, 2, 3}, true), y = tensor({4, 5, 6}, true);
  backward({ops::sum(ops::mul(x, y))});
  EXPECT_EQ(values(grad_of(x)), Values({4, 5, 6}));
  EXPECT_EQ(values(grad_of(y)), Values({1, 2, 3}));
}

TEST(Engine, GradsAddUp) {
  Tensor x = tensor({1, 2}, true);
  backward({ops::sum(ops::mul(x, x))});
  backward({ops::sum(ops::mul(x, x))});
  EXPECT_EQ(values(grad_of(x)), Values({4, 8}));
}

TEST(Engine, BroadcastIsReduced) {
  Tensor x = tensor({2}, true), y = tensor({1, 2, 3}, true);
  backward({ops::sum(ops::mul(x, y))});
  EXPECT_EQ(values(grad_of(x)), Values({6}));
  EXPECT_EQ(values(grad_of(y)), Values({2, 2, 2}));
}

TEST(Engine, GradOfGrad) {
  Tensor x = tensor({3}, true);
  Tensor y = ops::mul(ops::mul(x, x), x);
  Tensor g = grad({y}, {x}, {}, true, true)[0];
  EXPECT_EQ(values(g), Values({27}));
  Tensor gg = grad({g}, {x}, {}, true, true)[0];
  EXPECT_EQ(values(gg), Values({18}));
  EXPECT_EQ(values(grad({gg}, {x})[0]), Values({6}));
}

TEST(Engine, OutputsAreSavedWithTheirHistory) {
  Tensor x = tensor({0.5f}, true);
  Tensor g = grad({ops::exp(x)}, {x}, {}, true, true)[0];
  Tensor gg = grad({g}, {x})[0];
  EXPECT_FLOAT_EQ(values(gg)[0], std::exp(0.5f));
}

TEST(Engine, OnlyWhatLeadsToInputsRuns) {
  Tensor x = tensor({1}, true), y = tensor({2}, true);
  Tensor z = ops::mul(x, y);
  auto found = grad({z}, {x}, {}, true);
  EXPECT_EQ(values(found[0]), Values({2}));
  EXPECT_FALSE(grad_of(x).defined());
  backward({z}, {}, false, false, {y});
  EXPECT_EQ(values(grad_of(y)), Values({1}));
  EXPECT_FALSE(grad_of(x).defined());
}

TEST(Engine, UnusedInputs) {
  Tensor x = tensor({1}, true), y = tensor({2}, true);
  Tensor z = ops::mul(x, x);
  expect_error(error_of([&] { grad({z}, {y}, {}, true); }),
               "not have been used in the graph");
  EXPECT_FALSE(grad({z}, {y}, {}, true, false, true)[0].defined());
}

TEST(Engine, BackwardTwice) {
  Tensor x = tensor({1}, true);
  Tensor y = ops::mul(x, x);
  backward({y});
  expect_error(error_of([&] { backward({y}); }),
               "Trying to backward through the graph a second time");
}

TEST(Engine, NonScalarNeedsGrad) {
  Tensor x = tensor({1, 2}, true);
  expect_error(error_of([&] { backward({ops::mul(x, x)}); }),
               "grad can be implicitly created only for scalar outputs");
  expect_error(error_of([&] { backward({tensor({1})}); }),
               "does not require grad and does not have a grad_fn");
}

TEST(Engine, RetainedGrads) {
  Tensor x = tensor({1, 2}, true);
  Tensor y = ops::mul(x, x);
  retain_grad(y);
  backward({ops::sum(ops::mul(y, y))});
  EXPECT_EQ(values(grad_of(y)), Values({2, 8}));
  EXPECT_EQ(values(grad_of(x)), Values({4, 32}));
}

struct Doubling final : TensorHook {
  void call(Tensor& grad) override {
    ++calls;
    grad = ops::add(grad, grad);
  }
  int calls = 0;
};

TEST(Engine, TensorHooks) {
  Tensor x = tensor({1}, true);
  Tensor y = ops::mul(x, x);
  auto on_leaf = std::make_shared<Doubling>();
  auto on_result = std::make_shared<Doubling>();
  register_hook(x, on_leaf);
  register_hook(y, on_result);
  backward({y}, {}, true);
  EXPECT_EQ(values(grad_of(x)), Values({8}));
  EXPECT_EQ(values(grad({y}, {x})[0]), Values({8}));
  EXPECT_EQ(on_leaf->calls, 2);
  EXPECT_EQ(on_result->calls, 2);
}

TEST(Engine, AMillionNodes) {
  Tensor x = tensor({1}, true);
  {
    Tensor y = x;
    for (int i = 0; i < 1000000; ++i) y = ops::add(y, x, 0);
    backward({y});
  }
  EXPECT_EQ(values(grad_of(x)), Values({1}));
}

TEST(Engine, LongSavedChainsAreFreed) {
  Tensor x = tensor({1}, true);
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) y = ops::mul(y, x);
  y.reset();
  backward({ops::mul(x, x)});
  EXPECT_EQ(values(grad_of(x)), Values({2}));
}

TEST(Engine, SeveralThreadsOneGraph) {
  Tensor x = tensor({2}, true);
  Tensor y = ops::mul(x, x);
  for (int i = 0; i < 20; ++i) y = ops::add(ops::mul(y, x), x);
  Tensor want = grad({y}, {x}, {}, true)[0];
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        EXPECT_EQ(values(grad({y}, {x}, {}, true)[0]), values(want));
      }
      backward({y}, {}, true);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(values(grad_of(x))[0], 4 * values(want)[0]);
}

struct Reentering final : TensorHook {
  explicit Reentering(int depth) : left(depth) {}
  void call(Tensor& grad) override {
    if (left-- <= 0) return;
    GradModeGuard on(true);
    Tensor x = tensor({1}, true);
    auto hook = std::make_shared<Reentering>(left);
    Tensor y = ops::mul(x, x);
    register_hook(y, hook);
    backward({y});
    grad = ops::add(grad, grad_of(x));
  }
  int left;
};

TEST(Engine, NestedPasses) {
  Tensor x = tensor({1}, true);
  Tensor y = ops::mul(x, x);
  register_hook(y, std::make_shared<Reentering>(150));
  backward({y});
  EXPECT_TRUE(grad_of(x).defined());
}

TEST(Engine, IntegersRequireNoGrad) {
  Tensor t = make_tensor("test", IntArrayRef({2}), kLong);
  expect_error(error_of([&] { set_requires_grad(t, true); }),
               "only Tensors of floating point and complex dtype");
}

}  // namespace
}  // namespace taeda::autograd
