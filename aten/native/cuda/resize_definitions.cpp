// Planes resized behind a low-pass filter: a matrix for each dim, whose rows
// hold the weights of one output.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/upsample.h>
#include <taeda/aten/native/upsample_taps.h>
#include <taeda/c10/core/local_state.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/clamp.h>
#include <taeda/gen/ops/floor.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/transpose.h>

#include <cmath>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using native::Factor;
using native::Filter;
using native::Request;
using native::Taps;

Tensor as_dtype(const Tensor& t, ScalarType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor made = make_tensor("to", t.sizes(), dtype, t.device());
  copy_into(made, t);
  return made;
}

template <class W>
Tensor matrix_of(const Taps<W>& taps, ScalarType dtype, Device device) {
  Tensor here = make_tensor("upsample", {taps.out, taps.in}, kDouble);
  fill_with(here, 0);
  auto* weights = here.mutable_data<double>();
  for (int64_t i = 0; i < taps.out; ++i) {
    for (int64_t k = 0; k < taps.count[static_cast<size_t>(i)]; ++k) {
      auto at = static_cast<size_t>(i * taps.width + k);
      weights[i * taps.in + taps.at[at]] +=
          static_cast<double>(taps.weight[at]);
    }
  }
  Tensor there = make_tensor("upsample", here.sizes(), dtype, device);
  copy_into(there, as_dtype(here, dtype));
  return there;
}

// One dim of a plane: the matrix, and what whole numbers are divided by.
struct Line {
  Tensor matrix{};
  double scale = 1;
};

Line line_of(const Request& r,
             size_t d,
             int64_t in,
             int64_t out,
             ScalarType dtype,
             Device device) {
  bool same = r.factors[d] <= 0 || r.align_corners || r.factors[d] == 1;
  if (in == out && same) return {};
  Taps<double> taps = native::make_taps<double>(
      {r.filter, r.align_corners, r.factors[d]}, in, out);
  if (dtype != kByte) return {matrix_of(taps, dtype, device)};
  Taps<int32_t> whole = native::integer_taps(taps);
  return {matrix_of(whole, kDouble, device), std::exp2(whole.shift)};
}

// Bytes are rounded after every dim, by whole numbers that a double holds.
Tensor rounded(const Tensor& sums, double scale) {
  Tensor moved = ops::add(ops::mul(sums, Scalar(1 / scale)), Scalar(0.5));
  return ops::clamp(ops::floor(moved), Scalar(0), Scalar(255));
}

Tensor resized(const Tensor& self, IntArrayRef size, const Request& r) {
  ExcludeKeysGuard as_given(DispatchKey::Autocast);
  bool bytes = self.dtype() == kByte;
  ScalarType type = bytes || self.dtype() == kDouble ? kDouble : kFloat;
  auto line = [&](size_t d) {
    int64_t in = self.sizes()[d + 2];
    return line_of(r, d, in, size[d], bytes ? kByte : type, self.device());
  };
  Line across = line(1), down = line(0);
  Tensor x = as_dtype(self, type);
  if (across.matrix.defined()) {
    x = ops::matmul(x, ops::transpose(across.matrix, 0, 1));
    if (bytes) x = rounded(x, across.scale);
  }
  if (down.matrix.defined()) {
    x = ops::matmul(down.matrix, x);
    if (bytes) x = rounded(x, down.scale);
  }
  return as_dtype(x, self.dtype());
}

Tensor spread(const Tensor& grad, IntArrayRef size, const Request& r) {
  ExcludeKeysGuard as_given(DispatchKey::Autocast);
  ScalarType type = grad.dtype() == kDouble ? kDouble : kFloat;
  auto matrix = [&](size_t d) {
    int64_t out = grad.sizes()[d + 2];
    return line_of(r, d, size[d + 2], out, type, grad.device()).matrix;
  };
  Tensor down = matrix(0), across = matrix(1), x = as_dtype(grad, type);
  if (down.defined()) x = ops::matmul(ops::transpose(down, 0, 1), x);
  if (across.defined()) x = ops::matmul(x, across);
  return as_dtype(x, grad.dtype());
}

template <Filter kFilter>
Tensor resized_by(
    const Tensor& self, IntArrayRef size, bool corners, Factor h, Factor w) {
  return resized(self, size, native::request(kFilter, corners, h, w));
}
template <Filter kFilter>
Tensor spread_by(const Tensor& grad,
                 IntArrayRef,
                 IntArrayRef size,
                 bool corners,
                 Factor h,
                 Factor w) {
  return spread(grad, size, native::request(kFilter, corners, h, w));
}

}  // namespace

Definitions resize_definitions() {
  static const Definition all[] = {
      defined_as("_upsample_bilinear2d_aa",
                 resized_by<Filter::LinearAntialias>),
      defined_as("_upsample_bilinear2d_aa_backward",
                 spread_by<Filter::LinearAntialias>),
      defined_as("_upsample_bicubic2d_aa", resized_by<Filter::CubicAntialias>),
      defined_as("_upsample_bicubic2d_aa_backward",
                 spread_by<Filter::CubicAntialias>),
      defined_as("_upsample_lanczos2d_aa",
                 resized_by<Filter::LanczosAntialias>),
      defined_as("_upsample_lanczos2d_aa_backward",
                 spread_by<Filter::LanczosAntialias>),
  };
  return all;
}

}  // namespace taeda::cuda
