// Products with weights of 8-bit and 4-bit integers.
#include <taeda/aten/iter/spec.h>
#include <taeda/gen/native/_convert_weight_to_int4pack_for_cpu.h>
#include <taeda/gen/native/_weight_int4pack_mm_for_cpu.h>
#include <taeda/gen/native/_weight_int8pack_mm.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/bitwise_and.h>
#include <taeda/gen/ops/bitwise_right_shift.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/linear.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/t.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>
#include <vector>

namespace taeda::native {

namespace {

constexpr int64_t kBlock = 32;  // rows that are packed together

void check_factors(std::string_view op,
                   const Tensor& self,
                   const Tensor& mat2) {
  ScalarType t = self.dtype();
  TAEDA_CHECK(t == kFloat || t == kHalf || t == kBFloat16,
              op,
              ": expected self of float32, float16 or bfloat16, got ",
              t);
  TAEDA_CHECK(self.dim() == 2 && mat2.dim() == 2,
              op,
              ": expected two matrices, got ",
              self.sizes(),
              " and ",
              mat2.sizes());
}

// Sums are taken in float, and rounded once.
Tensor product(const Tensor& self,
               const Tensor& weights,
               const Tensor& scales) {
  Tensor out = ops::linear(ops::_to_copy(self, kFloat), weights, std::nullopt);
  if (scales.defined()) out = ops::mul(out, scales);
  return ops::_to_copy(out, self.dtype());
}

}  // namespace

Tensor weight_int8pack_mm(const Tensor& self,
                          const Tensor& mat2,
                          const Tensor& scales) {
  constexpr std::string_view kName = "_weight_int8pack_mm";
  check_factors(kName, self, mat2);
  TAEDA_CHECK(mat2.dtype() == kChar,
              kName,
              ": expected mat2 of int8, got ",
              mat2.dtype());
  TAEDA_CHECK(self.size(1) == mat2.size(1),
              kName,
              ": expected mat2 with ",
              self.size(1),
              " columns, got ",
              mat2.sizes());
  TAEDA_CHECK(scales.dim() == 1 && scales.size(0) == mat2.size(0) &&
                  scales.dtype() == self.dtype(),
              kName,
              ": expected ",
              mat2.size(0),
              " scales of ",
              self.dtype(),
              ", got ",
              scales.sizes(),
              " of ",
              scales.dtype());
  return product(
      self, ops::_to_copy(mat2, kFloat), ops::_to_copy(scales, kFloat));
}

Tensor convert_weight_to_int4pack(const Tensor& self, int64_t) {
  constexpr std::string_view kName = "_convert_weight_to_int4pack_for_cpu";
  TAEDA_CHECK(self.dim() == 2 && self.dtype() == kInt,
              kName,
              ": expected a matrix of int32, got ",
              self.sizes(),
              " of ",
              self.dtype());
  int64_t rows = self.size(0), columns = self.size(1);
  TAEDA_CHECK(rows % 16 == 0 && columns % 2 == 0,
              kName,
              ": expected rows in sixteens and columns in pairs, got ",
              self.sizes());
  std::vector<Tensor> blocks;
  for (int64_t start = 0; start < rows; start += kBlock) {
    int64_t count = std::min(kBlock, rows - start);
    Tensor block = ops::t(ops::narrow(self, 0, start, count));
    Tensor low = ops::slice(block, 1, 0, count, 2);
    Tensor high = ops::slice(block, 1, 1, count, 2);
    Tensor pairs = ops::add(low, ops::mul(high, Scalar(16)));
    blocks.push_back(ops::reshape(ops::_to_copy(pairs, kByte), {-1}));
  }
  return ops::reshape(ops::cat(blocks), {rows, columns / 2});
}

namespace {

// The numbers from 0 to 15, [m, k], as floats.
Tensor unpacked(const Tensor& packed) {
  int64_t rows = packed.size(0), columns = packed.size(1) * 2;
  std::vector<Tensor> blocks;
  for (int64_t start = 0; start < rows; start += kBlock) {
    int64_t count = std::min(kBlock, rows - start);
    Tensor pairs = ops::reshape(ops::narrow(packed, 0, start, count),
                                {columns, count / 2});
    Tensor halves[] = {ops::bitwise_and(pairs, Scalar(15)),
                       ops::bitwise_right_shift(pairs, Scalar(4))};
    Tensor block = ops::reshape(ops::stack(halves, -1), {columns, count});
    blocks.push_back(ops::t(block));
  }
  return ops::_to_copy(ops::cat(blocks), kFloat);
}

}  // namespace

Tensor weight_int4pack_mm(const Tensor& self,
                          const Tensor& mat2,
                          int64_t group,
                          const Tensor& scales_and_zeros) {
  constexpr std::string_view kName = "_weight_int4pack_mm_for_cpu";
  check_factors(kName, self, mat2);
  int64_t rows = mat2.size(0), columns = self.size(1);
  TAEDA_CHECK(mat2.dtype() == kByte && mat2.size(1) * 2 == columns,
              kName,
              ": expected packed weights of uint8 with ",
              columns,
              " columns in pairs, got ",
              mat2.sizes(),
              " of ",
              mat2.dtype());
  TAEDA_CHECK(group == 32 || group == 64 || group == 128 || group == 256,
              kName,
              ": expected qGroupSize 32, 64, 128 or 256, got ",
              group);
  int64_t groups = columns / group;
  int64_t wanted[] = {groups, rows, 2};
  TAEDA_CHECK(columns % group == 0 &&
                  scales_and_zeros.sizes() == IntArrayRef(wanted) &&
                  scales_and_zeros.dtype() == self.dtype(),
              kName,
              ": expected qScaleAndZeros of size ",
              IntArrayRef(wanted),
              " and dtype ",
              self.dtype(),
              ", got ",
              scales_and_zeros.sizes(),
              " and ",
              scales_and_zeros.dtype());
  auto each = [&](int64_t i) {
    Tensor part = ops::t(ops::select(scales_and_zeros, 2, i));
    return ops::unsqueeze(ops::_to_copy(part, kFloat), -1);
  };
  Tensor numbers = ops::reshape(unpacked(mat2), {rows, groups, group});
  Tensor weights =
      ops::add(ops::mul(ops::sub(numbers, Scalar(8)), each(0)), each(1));
  return product(self, ops::reshape(weights, {rows, columns}), {});
}

}  // namespace taeda::native
