// Fourier transforms: by cuFFT (Note [Transforms by cuFFT]), or by a kernel of
// our own that adds up every element for every other.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/fourier.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/permute.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

ScalarType complex_of(ScalarType t) {
  if (is_complex(t)) return t;
  if (t == kDouble) return kComplexDouble;
  return t == kHalf ? kComplexHalf : kComplexFloat;
}
ScalarType real_of(ScalarType t) {
  if (t == kComplexDouble) return kDouble;
  return t == kComplexHalf ? kHalf : kFloat;
}

DimVector wrapped(IntArrayRef dims, const Tensor& t) {
  DimVector all;
  for (int64_t dim : dims) all.push_back(dim < 0 ? dim + t.dim() : dim);
  return all;
}

// What transforms of so many elements are multiplied with: 1 stands for the
// root of their number, 2 for the number.
double scale_of(int64_t normalization, double count) {
  if (normalization == 1) return 1 / std::sqrt(count);
  return normalization == 2 ? 1 / count : 1;
}

// Our own kernels, along one dim.
Tensor along(const Tensor& x, int64_t dim, bool forward) {
  Tensor out = make_tensor("fft", x.sizes(), complex_of(x.dtype()), x.device());
  DeviceCall("fft", "transforms", "fourier_at(g, i);")
      .number("dim", dim)
      .number("sign", forward ? -1 : 1)
      .number("scale", 1.0)
      .tensor("x", x)
      .tensor("result", out)
      .run(out.numel());
  return out;
}
Tensor real_along(const Tensor& x, int64_t dim, int64_t size) {
  DimVector sizes(x.sizes());
  sizes[static_cast<size_t>(dim)] = size;
  Tensor out = make_tensor("fft", sizes, real_of(x.dtype()), x.device());
  DeviceCall("fft", "transforms", "fourier_real_at(g, i);")
      .number("dim", dim)
      .number("scale", 1.0)
      .tensor("x", x)
      .tensor("result", out)
      .run(out.numel());
  return out;
}

// All dims, those that are transformed last.
DimVector order_of(const Tensor& x, const DimVector& dims) {
  DimVector order;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      order.push_back(d);
    }
  }
  for (int64_t d : dims) order.push_back(d);
  return order;
}
DimVector inverse(const DimVector& order) {
  DimVector places(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    places[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return places;
}

// By the library, over up to three dims; `last` is the size of the real side
// along the last one. Nothing where it has no such transform.
std::optional<Tensor> by_library(const Tensor& x,
                                 const DimVector& dims,
                                 ScalarType result,
                                 bool forward,
                                 int64_t last) {
  if (x.numel() == 0 || !has_cufft()) return std::nullopt;
  DimVector order = order_of(x, dims);
  Tensor in = ops::contiguous(ops::permute(x, order));
  bool uses_up = !is_complex(result);
  if (uses_up && in.const_raw_data() == x.const_raw_data()) in = ops::clone(in);
  DimVector sizes(in.sizes());
  Fourier f{x.dtype(), result, {}, 1, forward};
  f.sizes.assign(sizes.end() - dims.size(), sizes.end());
  f.sizes.back() = last;
  for (size_t d = 0; d + dims.size() < sizes.size(); ++d) {
    f.batches *= sizes[d];
  }
  sizes.back() = is_complex(x.dtype()) ? last : last / 2 + 1;
  Tensor out = make_tensor("fft", sizes, result, x.device());
  bool done = transform("fft",
                        f,
                        const_cast<void*>(in.const_raw_data()),
                        out.mutable_raw_data(),
                        x.device().index);
  if (!done) return std::nullopt;
  return ops::permute(out, inverse(order));
}

Tensor scaled(Tensor x, double scale) {
  if (scale != 1) ops::mul_(x, Scalar(scale));
  return x;
}

double count_of(const Tensor& x, const DimVector& dims) {
  double count = 1;
  for (int64_t d : dims) count *= static_cast<double>(x.size(d));
  return count;
}

Tensor complex_transform(Tensor x, const DimVector& dims, bool forward) {
  for (size_t first = 0; first < dims.size(); first += 3) {
    size_t end = std::min(first + 3, dims.size());
    DimVector some(dims.begin() + first, dims.begin() + end);
    auto made = by_library(x, some, x.dtype(), forward, x.size(some.back()));
    if (made) {
      x = *made;
      continue;
    }
    for (int64_t dim : some) x = along(x, dim, forward);
  }
  return x;
}

Tensor as_complex(const Tensor& x) {
  if (x.is_complex()) return x;
  return Tensor(contiguous_as(x, complex_of(x.dtype())));
}

Tensor c2c(const Tensor& self,
           IntArrayRef dims,
           int64_t normalization,
           bool forward) {
  if (dims.empty()) return ops::clone(self);
  DimVector all = wrapped(dims, self);
  double scale = scale_of(normalization, count_of(self, all));
  return scaled(complex_transform(self, all, forward), scale);
}

// The last dims first, whose transform halves the last one; then the others.
Tensor r2c(const Tensor& self,
           IntArrayRef dims,
           int64_t normalization,
           bool onesided) {
  DimVector all = wrapped(dims, self);
  double scale = scale_of(normalization, count_of(self, all));
  int64_t size = self.size(all.back());
  if (!onesided) {
    return scaled(complex_transform(as_complex(self), all, true), scale);
  }
  Tensor real = self;
  if (self.dtype() == kBFloat16) real = Tensor(contiguous_as(self, kFloat));
  size_t few = std::min<size_t>(all.size(), 3);
  DimVector some(all.end() - few, all.end()),
      rest(all.begin(), all.end() - few);
  auto made = by_library(real, some, complex_of(real.dtype()), true, size);
  if (made) return scaled(complex_transform(*made, rest, true), scale);
  Tensor x = complex_transform(as_complex(real), all, true);
  return scaled(ops::narrow(x, all.back(), 0, size / 2 + 1), scale);
}

Tensor c2r(const Tensor& self,
           IntArrayRef dims,
           int64_t normalization,
           int64_t size) {
  DimVector all = wrapped(dims, self);
  DimVector others(all.begin(), all.end() - 1);
  double count = count_of(self, others) * static_cast<double>(size);
  double scale = scale_of(normalization, count);
  size_t few = std::min<size_t>(all.size(), 3);
  DimVector some(all.end() - few, all.end()),
      rest(all.begin(), all.end() - few);
  if (self.size(all.back()) == size / 2 + 1) {
    Tensor x = complex_transform(self, rest, false);
    auto made = by_library(x, some, real_of(x.dtype()), false, size);
    if (made) return scaled(*made, scale);
  }
  Tensor x = complex_transform(self, others, false);
  return scaled(real_along(x, all.back(), size), scale);
}

}  // namespace

Definitions fourier_definitions() {
  static const Definition all[] = {
      defined_as("_fft_c2c", c2c),
      defined_as("_fft_r2c", r2c),
      defined_as("_fft_c2r", c2r),
  };
  return all;
}

}  // namespace taeda::cuda
