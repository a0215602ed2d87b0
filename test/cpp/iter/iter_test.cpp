#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/iteration_space.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/reduce.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sum.h>

#include "../autograd/helpers.h"

#include <cmath>
#include <numeric>

namespace taeda {
namespace {

using autograd::tensor;
using autograd::values;
using Values = std::vector<float>;

// 0, 1, 2, ... in a row-major tensor.
TensorBase counting(std::vector<int64_t> sizes, ScalarType dtype = kFloat) {
  TensorBase t = make_tensor("test", sizes, dtype);
  char* p = t.mutable_data<char>();
  for (int64_t i = 0; i < t.numel(); ++i) {
    Scalar(i).store(dtype, p + i * static_cast<int64_t>(t.itemsize()));
  }
  return t;
}

double at(const TensorBase& t, std::vector<int64_t> index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * t.stride(d);
  const char* p = t.const_data<char>();
  return Scalar::load(t.dtype(),
                      p + offset * static_cast<int64_t>(t.itemsize()))
      .to_double();
}

TensorBase transposed(const TensorBase& t) {
  return make_view(t, {t.size(1), t.size(0)}, {t.stride(1), t.stride(0)}, 0);
}

TEST(IterationSpace, DenseOperandsBecomeOneDim) {
  int64_t row_major[] = {48, 16, 4}, column_major[] = {4, 8, 24};
  IterationSpace rows({2, 3, 4}, {row_major, row_major});
  EXPECT_EQ(rows.dim(), 1);
  EXPECT_EQ(rows.size(0), 24);
  EXPECT_TRUE(rows.is_linear(0, 4));
  IterationSpace columns({2, 3, 4}, {column_major});
  EXPECT_EQ(columns.dim(), 1);
  IterationSpace mixed({2, 3, 4}, {row_major, column_major});
  EXPECT_EQ(mixed.numel(), 24);
  EXPECT_GT(mixed.dim(), 1);
}

TEST(IterationSpace, WalkersVisitEveryElementOnce) {
  int64_t strides[] = {1, 100, 10};  // sizes 4, 2, 3
  IterationSpace space({4, 2, 3}, {strides}, /*keep_order=*/true);
  for (int64_t start = 0; start < 24; ++start) {
    std::vector<int64_t> seen;
    OperandWalker walker(space, 0, start);
    walker.advance(24 - start, [&](int64_t offset, int64_t stride, int64_t n) {
      for (int64_t i = 0; i < n; ++i) seen.push_back(offset + i * stride);
    });
    std::vector<int64_t> want;
    for (int64_t i = start; i < 24; ++i) {
      want.push_back(i / 6 + i / 3 % 2 * 100 + i % 3 * 10);
    }
    EXPECT_EQ(seen, want);
  }
}

TEST(Broadcast, SizesMeetFromTheRight) {
  EXPECT_EQ(IntArrayRef(broadcast_shapes<int64_t>(
                "f", IntArrayRef({4, 1, 3}), IntArrayRef({5, 1}))),
            IntArrayRef({4, 5, 3}));
  EXPECT_EQ(IntArrayRef(broadcast_shapes<int64_t>(
                "f", IntArrayRef({0}), IntArrayRef(int64_t{1}))),
            IntArrayRef(int64_t{0}));
  expect_throws(ErrorKind::Runtime, "must match the size of tensor b (3)", [] {
    ops::add(counting({2, 2}), counting({2, 3}));
  });
}

TEST(Pointwise, StridedBroadcastAndMixedOperands) {
  TensorBase a = transposed(counting({3, 700})), b = counting({3}, kLong);
  TensorBase c = ops::add(a, b);
  EXPECT_EQ(c.dtype(), kFloat);
  ASSERT_EQ(c.sizes(), IntArrayRef({700, 3}));
  for (int64_t i : {0, 1, 511, 512, 699}) {
    for (int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(at(c, {i, j}), static_cast<double>(j * 700 + i + j));
    }
  }
}

TEST(Pointwise, HalvesAreComputedInFloat) {
  TensorBase a = counting({1000}, kHalf), b = counting({1000}, kBFloat16);
  EXPECT_EQ(at(ops::mul(a, 2), {999}), 1998);
  EXPECT_EQ(ops::add(a, b).dtype(), kFloat);
  EXPECT_EQ(at(ops::add(a, b), {999}), 1999);  // bfloat16(999) is 1000
}

TEST(Pointwise, EmptyAndZeroDimensional) {
  EXPECT_EQ(ops::add(counting({0, 3}), counting({3})).sizes(),
            IntArrayRef({0, 3}));
  TensorBase scalar = counting({});
  EXPECT_EQ(ops::add(scalar, scalar).dim(), 0);
}

TEST(Promotion, DimensionedTensorsDecideWithinAKind) {
  TensorBase many = counting({2}), one = counting({}, kDouble);
  EXPECT_EQ(result_type(many, one), kFloat);
  EXPECT_EQ(result_type(counting({2}, kInt), one), kDouble);
  EXPECT_EQ(result_type(counting({2}, kChar), Scalar(1000)), kChar);
  EXPECT_EQ(result_type(counting({2}, kLong), Scalar(0.5)), kFloat);
  EXPECT_EQ(result_type(counting({}, kInt), wrap_number(Scalar(true))), kInt);
}

TEST(Copy, ConvertsBetweenAllDtypes) {
  constexpr ScalarType kTypes[] = {
#define _(name, type, number, text) k##name,
      TAEDA_FORALL_TYPES(_)
#undef _
  };
  for (ScalarType from : kTypes) {
    TensorBase source = counting({2}, from);
    for (ScalarType to : kTypes) {
      TensorBase target = make_tensor("test", {2}, to);
      copy_into(target, source);
      const char* p = target.const_data<char>() + target.itemsize();
      EXPECT_TRUE(Scalar::load(to, p).equal(1.0))
          << type_name(from) << " to " << type_name(to);
    }
  }
}

TEST(Copy, BroadcastsAndKeepsGapsAlone) {
  TensorBase base = counting({3, 4});
  copy_into(make_view(base, {3, 2}, {4, 2}, 1), tensor({-1, -2}));
  EXPECT_EQ(at(base, {2, 0}), 8);
  EXPECT_EQ(at(base, {2, 1}), -1);
  EXPECT_EQ(at(base, {2, 2}), 10);
  EXPECT_EQ(at(base, {2, 3}), -2);
}

TEST(Overlap, IsFoundBeforeWriting) {
  TensorBase t = counting({10});
  TensorBase head = make_view(t, {6}, {1}, 0), tail = make_view(t, {6}, {1}, 4);
  EXPECT_EQ(overlap_of(head, tail), Overlap::Partial);
  EXPECT_EQ(overlap_of(head, make_view(t, {6}, {1}, 0)), Overlap::Full);
  EXPECT_EQ(overlap_of(make_view(t, {2}, {1}, 0), make_view(t, {2}, {1}, 2)),
            Overlap::None);
  expect_throws(ErrorKind::Runtime, "refer to a single memory location", [&] {
    ops::add_out(head, head, 1, tail);
  });
  TensorBase expanded = make_view(t, {5}, {0}, 0);
  expect_throws(ErrorKind::Runtime, "more than one element", [&] {
    ops::add_(expanded, counting({5}));
  });
  EXPECT_EQ(values(t), values(counting({10})));
}

TEST(Out, IsResizedAndItsDtypeChecked) {
  TensorBase out = make_tensor("test", {0}, kDouble);
  ops::add_out(counting({2, 3}), counting({3}), 1, out);
  EXPECT_EQ(out.sizes(), IntArrayRef({2, 3}));
  EXPECT_EQ(at(out, {1, 2}), 7);
  TensorBase ints = make_tensor("test", {2, 3}, kLong);
  expect_throws(ErrorKind::Runtime, "can't be cast to the desired", [&] {
    ops::add_out(counting({2, 3}), counting({3}), 1, ints);
  });
  TensorBase small = counting({3});
  expect_throws(ErrorKind::Runtime, "doesn't match the broadcast shape", [&] {
    ops::add_(small, counting({2, 3}));
  });
}

TEST(Reduce, StridedInputsAndSeveralDims) {
  TensorBase t = counting({4, 5, 6});
  TensorBase swapped = make_view(t, {6, 5, 4}, {1, 6, 30}, 0);
  std::vector<int64_t> outer{0, 2};
  TensorBase sums = ops::sum(swapped, IntArrayRef(outer));
  ASSERT_EQ(sums.sizes(), IntArrayRef(int64_t{5}));
  for (int64_t j = 0; j < 5; ++j) {
    double want = 0;
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < 6; ++k)
        want += static_cast<double>(30 * i + 6 * j + k);
    }
    EXPECT_EQ(at(sums, {j}), want);
  }
  EXPECT_EQ(ops::sum(swapped, IntArrayRef(outer), true).sizes(),
            IntArrayRef({1, 5, 1}));
}

TEST(Reduce, LongSumsKeepTheirDigits) {
  TensorBase t = make_tensor("test", {1 << 22}, kFloat);
  fill_with(t, 0.1);
  double want = static_cast<double>(0.1f) * (1 << 22);
  // Sums of sums: 22 levels of additions at most, as in a tree.
  EXPECT_NEAR(at(ops::sum(t), {}), want, want * 22 * 0x1p-24);
}

TEST(Reduce, DimsAreChecked) {
  EXPECT_EQ(dim_mask(std::nullopt, 3) & 7, 7u);
  EXPECT_EQ(dim_mask(IntArrayRef({-1, 0}), 3), 5u);
  expect_throws(ErrorKind::Runtime, "appears multiple times", [] {
    dim_mask(IntArrayRef({0, -3}), 3);
  });
  expect_throws(ErrorKind::Index, "Dimension out of range", [] {
    dim_mask(IntArrayRef(int64_t{3}), 3);
  });
  EXPECT_EQ(at(ops::sum(make_tensor("test", {0}, kFloat)), {}), 0);
}

}  // namespace
}  // namespace taeda
