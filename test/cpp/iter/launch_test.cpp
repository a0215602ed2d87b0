// A device of the test's own: what drivers plan for it, and what it is handed.
#include <taeda/aten/iter/launch.h>
#include <taeda/c10/core/allocator.h>

#include "../errors.h"

namespace taeda {
namespace {

constexpr DeviceType kPretended = DeviceType::PrivateUse1;

// What the launchers were called with last; tests run on one thread.
struct Launched {
  int calls = 0;
  ScalarType dtype = ScalarType::Undefined;
  DimVector sizes, strides;
  uint64_t mask = 0;
};
Launched launched;

void note(const TensorBase& out) {
  ++launched.calls;
  launched.dtype = out.dtype();
  launched.sizes = DimVector(out.sizes());
  launched.strides = DimVector(out.strides());
}

constexpr Launchers kLaunchers{[](const PointwiseOp&,
                                  const DtypePlan&,
                                  const TensorBase& out,
                                  Operands,
                                  ArrayRef<Scalar>) { note(out); },
                               [](const ReduceOp&,
                                  const ReducePlan& plan,
                                  const TensorBase&,
                                  const TensorBase& out,
                                  ArrayRef<Scalar>) {
                                 note(out);
                                 launched.mask = plan.mask;
                               },
                               nullptr,
                               nullptr};

// Memory of the CPU under another device's name.
class Launch : public testing::Test {
 protected:
  void SetUp() override {
    launched = {};
    set_allocator(kPretended, &cpu_allocator());
    set_launchers(kPretended, &kLaunchers);
  }
  void TearDown() override {
    set_launchers(kPretended, nullptr);
    set_allocator(kPretended, nullptr);
  }
  static TensorBase tensor(IntArrayRef sizes, ScalarType dtype = kFloat) {
    return make_tensor("test", sizes, dtype, Device(kPretended, 0));
  }
};

// Operators without a loop for the CPU: a plan that looked at one would crash.
constexpr DtypeRule kRule{.computes = 1 << static_cast<int>(Compute::F32) |
                                      1 << static_cast<int>(Compute::F64)};
constexpr PointwiseOp kOp{"test_op", 2, 0, kRule, {}, nullptr};
constexpr ReduceOp kReduction{"test_sum", kRule, true, {}, nullptr};

TEST_F(Launch, PointwiseHandsItsPlanToTheDevice) {
  TensorBase a = tensor({3, 1}), b = tensor({4}, kDouble);
  TensorBase out = pointwise(kOp, {a, b});
  EXPECT_EQ(launched.calls, 1);
  EXPECT_EQ(out.device().type, kPretended);
  EXPECT_EQ(launched.dtype, kDouble);
  EXPECT_EQ(IntArrayRef(launched.sizes), IntArrayRef({3, 4}));
  EXPECT_EQ(IntArrayRef(launched.strides), IntArrayRef({4, 1}));
}

TEST_F(Launch, ReduceHandsItsPlanToTheDevice) {
  DimVector dims{0, 2};
  TensorBase out = reduce(kReduction, tensor({2, 3, 4}), {.dims = dims});
  EXPECT_EQ(launched.calls, 1);
  EXPECT_EQ(launched.mask, 0b101u);
  EXPECT_EQ(out.sizes(), IntArrayRef({3}));
}

TEST_F(Launch, WhatHasNoElementsIsPlannedAlone) {
  EXPECT_EQ(pointwise(kOp, {tensor({0, 2}), tensor({2})}).sizes(),
            IntArrayRef({0, 2}));
  TensorBase meta = make_tensor("test", {2}, kFloat, DeviceType::Meta);
  EXPECT_EQ(pointwise(kOp, {meta, meta}).sizes(), IntArrayRef({2}));
  EXPECT_EQ(launched.calls, 0);
}

TEST_F(Launch, DevicesWithoutLaunchersRefuseByName) {
  set_launchers(kPretended, nullptr);
  TensorBase a = tensor({2});
  expect_throws(ErrorKind::NotImplemented,
                "test_op: no kernel for device",
                [&] { pointwise(kOp, {a, a}); });
  expect_throws(ErrorKind::NotImplemented, "test_sum: no kernel", [&] {
    reduce(kReduction, a, {});
  });
}

}  // namespace
}  // namespace taeda
