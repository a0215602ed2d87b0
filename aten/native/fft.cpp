// Fourier transforms: shapes, and the functions of taeda.fft in terms of three
// kernels: complex to complex, real to half a spectrum, and back.
#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/c10/core/local_state.h>
#include <taeda/gen/native/_fft_c2c.h>
#include <taeda/gen/native/_fft_c2r.h>
#include <taeda/gen/native/_fft_r2c.h>
#include <taeda/gen/native/fft_fft.h>
#include <taeda/gen/native/fft_fftn.h>
#include <taeda/gen/native/fft_hfft.h>
#include <taeda/gen/native/fft_hfftn.h>
#include <taeda/gen/native/fft_ifft.h>
#include <taeda/gen/native/fft_ifftn.h>
#include <taeda/gen/native/fft_ihfft.h>
#include <taeda/gen/native/fft_ihfftn.h>
#include <taeda/gen/native/fft_irfft.h>
#include <taeda/gen/native/fft_irfftn.h>
#include <taeda/gen/native/fft_rfft.h>
#include <taeda/gen/native/fft_rfftn.h>
#include <taeda/gen/ops/_fft_c2c.h>
#include <taeda/gen/ops/_fft_c2r.h>
#include <taeda/gen/ops/_fft_r2c.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/sym/_fft_c2r.h>
#include <taeda/gen/sym/constant_pad_nd.h>
#include <taeda/gen/sym/slice.h>

#include <algorithm>
#include <numeric>

namespace taeda::native {

namespace {

// The result's strides are PyTorch's: transformed dims lie innermost, in the
// order given (`as_given`) or that of self's strides, the others around them.
template <class I>
void plan_spectrum(Plan<I>& plan,
                   const Spec<I>& self,
                   const Dims<I>& sizes,
                   IntArrayRef dims,
                   bool as_given,
                   ScalarType dtype) {
  DimVector order(sizes.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  DimVector wrapped;
  for (int64_t d : dims) wrapped.push_back(wrap_dim(d, self.dim()));
  auto moved =
      std::stable_partition(order.begin(), order.end(), [&](int64_t d) {
        return std::find(wrapped.begin(), wrapped.end(), d) == wrapped.end();
      });
  auto outer = [&](int64_t a, int64_t b) {
    return self.strides()[static_cast<size_t>(b)] <
           self.strides()[static_cast<size_t>(a)];
  };
  std::stable_sort(order.begin(), moved, outer);
  if (as_given) {
    std::copy(wrapped.begin(), wrapped.end(), moved);
  } else {
    std::stable_sort(moved, order.end(), outer);
  }
  Dims<I> strides(sizes);
  I step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    auto d = static_cast<size_t>(order[i]);
    strides[d] = step;
    step *= sym_max(sizes[d], I(1));
  }
  plan.set(0, sizes, strides, dtype);
}

// Half is transformed on devices alone.
bool has_transforms_of(ScalarType real, Device device) {
  return real == kFloat || real == kDouble ||
         (real == kHalf && !device.is_cpu());
}

template <class I>
void check_transformable(const Spec<I>& self, bool complex, IntArrayRef dims) {
  ScalarType t = self.dtype();
  TAEDA_CHECK(is_complex(t) == complex &&
                  has_transforms_of(real_type_of(t), self.device()),
              "Unsupported dtype ",
              t);
  for (size_t i = 0; i < dims.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      TAEDA_CHECK(
          wrap_dim(dims[i], self.dim()) != wrap_dim(dims[j], self.dim()),
          "FFT dims must be unique");
    }
  }
}

// The size of the last transformed dim.
template <class I>
I& last_of(Dims<I>& sizes, IntArrayRef dims) {
  TAEDA_CHECK(!dims.empty(), "must transform at least one axis");
  auto rank = static_cast<int64_t>(sizes.size());
  return sizes[static_cast<size_t>(wrap_dim(dims.back(), rank))];
}

}  // namespace

template <class I>
void fft_c2c_shape(
    const Spec<I>& self, IntArrayRef dim, int64_t, bool, Plan<I>& plan) {
  check_transformable(self, true, dim);
  plan_spectrum(plan, self, Dims<I>(self.sizes()), dim, false, self.dtype());
}
TAEDA_SHAPE(fft_c2c_shape);

template <class I>
void fft_r2c_shape(const Spec<I>& self,
                   IntArrayRef dim,
                   int64_t,
                   bool onesided,
                   Plan<I>& plan) {
  check_transformable(self, false, dim);
  Dims<I> sizes(self.sizes());
  if (onesided) {
    I& last = last_of(sizes, dim);
    TAEDA_CHECK(last > 0, "Invalid number of data points (0) specified");
    last = last / 2 + 1;
  }
  ScalarType t = complex_type_of(self.dtype());
  plan_spectrum(plan, self, sizes, dim, onesided, t);
}
TAEDA_SHAPE(fft_r2c_shape);

template <class I>
void fft_c2r_shape(const Spec<I>& self,
                   IntArrayRef dim,
                   int64_t,
                   I last_dim_size,
                   Plan<I>& plan) {
  check_transformable(self, true, dim);
  Dims<I> sizes(self.sizes());
  I& last = last_of(sizes, dim);
  TAEDA_CHECK(last_dim_size >= 1 && last == last_dim_size / 2 + 1,
              "_fft_c2r: a line of ",
              last_dim_size,
              " numbers does not have a half spectrum of ",
              last);
  last = last_dim_size;
  plan_spectrum(plan, self, sizes, dim, true, real_type_of(self.dtype()));
}
TAEDA_SHAPE(fft_c2r_shape);

namespace {

using Length = std::optional<int64_t>;
using Lengths = std::optional<IntArrayRef>;
using Norm = std::optional<std::string_view>;

// What a result is divided by: 0 nothing, 1 the root of the number of
// elements, 2 that number.
int64_t divisor_of(Norm norm, bool forward) {
  std::string_view name = norm.value_or("backward");
  if (name == "ortho") return 1;
  TAEDA_CHECK(name == "forward" || name == "backward",
              "Invalid normalization mode: \"",
              name,
              "\"");
  return (name == "forward") == forward ? 2 : 0;
}

// Integers become the default dtype, real numbers complex ones if wanted.
Tensor promoted(const Tensor& self, bool complex) {
  ScalarType t = self.dtype();
  if (!is_floating(t) && !is_complex(t)) t = default_dtype();
  TAEDA_CHECK(has_transforms_of(real_type_of(t), self.device()),
              "Unsupported dtype ",
              t);
  if (complex) t = complex_type_of(t);
  return t == self.dtype() ? self : ops::to(self, t);
}
Tensor promoted_real(std::string_view name, const Tensor& self) {
  TAEDA_CHECK(!is_complex(self.dtype()),
              name,
              name.ends_with('n')
                  ? " expects a real-valued input tensor, but got "
                  : " expects a real input tensor, but got ",
              self.dtype());
  return promoted(self, false);
}

// Which dims are transformed, and how long each is then.
struct Extent {
  DimVector dims;
  Dims<SymInt> sizes;

  void set_last(const SymInt& size) { sizes.back() = size; }
};

void check_length(const SymInt& n) {
  TAEDA_CHECK(n >= 1, "Invalid number of data points (", n, ") specified");
}

Extent extent_of(const Tensor& self, Length n, int64_t dim) {
  const SymInt& size = symbolic_size(self, dim);
  return {{wrap_dim(dim, self.dim())}, {n ? SymInt(*n) : size}};
}

Extent extent_of(const Tensor& self, Lengths s, Lengths dim) {
  Extent found;
  TAEDA_CHECK(!s || !dim || s->size() == dim->size(),
              "When given, dim and shape arguments must have the same length");
  TAEDA_CHECK(!s || static_cast<int64_t>(s->size()) <= self.dim(),
              "Got shape with ",
              s ? s->size() : 0,
              " values but input tensor only has ",
              self.dim(),
              " dimensions.");
  int64_t count = s ? static_cast<int64_t>(s->size()) : self.dim();
  if (dim) {
    for (int64_t d : *dim) {
      int64_t w = wrap_dim(d, self.dim());
      TAEDA_CHECK(std::find(found.dims.begin(), found.dims.end(), w) ==
                      found.dims.end(),
                  "FFT dims must be unique");
      found.dims.push_back(w);
    }
  } else {
    for (int64_t d = self.dim() - count; d < self.dim(); ++d)
      found.dims.push_back(d);
  }
  for (size_t i = 0; i < found.dims.size(); ++i) {
    int64_t size = s ? (*s)[i] : -1;
    found.sizes.push_back(size == -1 ? symbolic_size(self, found.dims[i])
                                     : SymInt(size));
  }
  return found;
}

// Each dim cut or filled up with zeros to the length that is transformed.
Tensor resized(const Tensor& self, const Extent& extent) {
  Tensor x = self;
  Dims<SymInt> pad(static_cast<size_t>(2 * self.dim()), SymInt(0));
  bool longer = false;
  for (size_t i = 0; i < extent.dims.size(); ++i) {
    int64_t d = extent.dims[i];
    const SymInt& size = extent.sizes[i];
    check_length(size);
    if (symbolic_size(x, d) > size) x = sym::slice(x, d, 0, size, 1);
    SymInt missing = size - symbolic_size(x, d);
    pad[static_cast<size_t>(2 * (self.dim() - 1 - d) + 1)] = missing;
    longer |= missing > 0;
  }
  return longer ? sym::constant_pad_nd(x, pad, int64_t{0}) : x;
}

// Spectra of real numbers are computed as such, both halves of them.
Tensor complex_transform(const Tensor& self,
                         const Extent& extent,
                         Norm norm,
                         bool forward) {
  int64_t divisor = divisor_of(norm, forward);
  bool real = forward && !is_complex(self.dtype()) && !extent.dims.empty();
  Tensor x = resized(promoted(self, !real), extent);
  if (real) return ops::_fft_r2c(x, extent.dims, divisor, false);
  return ops::_fft_c2c(x, extent.dims, divisor, forward);
}

Tensor from_real(std::string_view name,
                 const Tensor& self,
                 const Extent& extent,
                 Norm norm,
                 bool forward) {
  TAEDA_CHECK(!extent.dims.empty(), name, " must transform at least one axis");
  Tensor x = resized(promoted_real(name, self), extent);
  return ops::_fft_r2c(x, extent.dims, divisor_of(norm, forward), true);
}

// A half spectrum to real numbers, whose last length is 2 (n - 1) if it is not
// given.
Tensor to_real(std::string_view name,
               const Tensor& self,
               Extent extent,
               bool given,
               Norm norm,
               bool forward) {
  TAEDA_CHECK(!extent.dims.empty(), name, " must transform at least one axis");
  SymInt last = given
                    ? extent.sizes.back()
                    : (symbolic_size(self, extent.dims.back()) - 1) * SymInt(2);
  check_length(last);
  extent.set_last(last / SymInt(2) + 1);
  Tensor x = resized(promoted(self, true), extent);
  if (forward && is_complex(self.dtype())) x = ops::conj(x);
  return sym::_fft_c2r(x, extent.dims, divisor_of(norm, forward), last);
}

bool gives_last(const Lengths& s) {
  return s && !s->empty() && s->back() != -1;
}

}  // namespace

Tensor fft_fft(const Tensor& self, Length n, int64_t dim, Norm norm) {
  return complex_transform(self, extent_of(self, n, dim), norm, true);
}
Tensor fft_ifft(const Tensor& self, Length n, int64_t dim, Norm norm) {
  Extent extent = extent_of(self, n, dim);
  if (is_complex(self.dtype()))
    return complex_transform(self, extent, norm, false);
  Tensor x = resized(promoted(self, false), extent);
  int64_t divisor = divisor_of(norm, false);
  return ops::conj(ops::_fft_r2c(x, extent.dims, divisor, false));
}
Tensor fft_rfft(const Tensor& self, Length n, int64_t dim, Norm norm) {
  return from_real("rfft", self, extent_of(self, n, dim), norm, true);
}
Tensor fft_irfft(const Tensor& self, Length n, int64_t dim, Norm norm) {
  Extent extent = extent_of(self, n, dim);
  return to_real("irfft", self, extent, n.has_value(), norm, false);
}
Tensor fft_hfft(const Tensor& self, Length n, int64_t dim, Norm norm) {
  Extent extent = extent_of(self, n, dim);
  return to_real("hfft", self, extent, n.has_value(), norm, true);
}
Tensor fft_ihfft(const Tensor& self, Length n, int64_t dim, Norm norm) {
  Extent extent = extent_of(self, n, dim);
  return ops::conj(from_real("ihfft", self, extent, norm, false));
}

Tensor fft_fftn(const Tensor& self, Lengths s, Lengths dim, Norm norm) {
  return complex_transform(self, extent_of(self, s, dim), norm, true);
}
Tensor fft_ifftn(const Tensor& self, Lengths s, Lengths dim, Norm norm) {
  return complex_transform(self, extent_of(self, s, dim), norm, false);
}
Tensor fft_rfftn(const Tensor& self, Lengths s, Lengths dim, Norm norm) {
  return from_real("rfftn", self, extent_of(self, s, dim), norm, true);
}
Tensor fft_irfftn(const Tensor& self, Lengths s, Lengths dim, Norm norm) {
  Extent extent = extent_of(self, s, dim);
  return to_real("irfftn", self, extent, gives_last(s), norm, false);
}
Tensor fft_hfftn(const Tensor& self, Lengths s, Lengths dim, Norm norm) {
  Extent extent = extent_of(self, s, dim);
  return to_real("hfftn", self, extent, gives_last(s), norm, true);
}
Tensor fft_ihfftn(const Tensor& self, Lengths s, Lengths dim, Norm norm) {
  Extent extent = extent_of(self, s, dim);
  if (extent.dims.size() < 2) {
    return ops::conj(from_real("ihfftn", self, extent, norm, false));
  }
  // Along the last dim first: a result lies as the last transform leaves it,
  // and is no view of its conjugate.
  Tensor x = resized(promoted_real("ihfftn", self), extent);
  int64_t divisor = divisor_of(norm, false), last = extent.dims.back();
  extent.dims.pop_back();
  Tensor half = ops::_fft_r2c(x, {last}, divisor, /*onesided=*/true);
  return ops::_fft_c2c(
      ops::conj(half), extent.dims, divisor, /*forward=*/false);
}

}  // namespace taeda::native
