// Fourier transforms: one dim after the other.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/fft_lines.h>
#include <taeda/aten/native/cpu/fft_pass.h>
#include <taeda/gen/native/_fft_c2c.h>
#include <taeda/gen/native/_fft_c2r.h>
#include <taeda/gen/native/_fft_r2c.h>
#include <taeda/gen/ops/clone.h>

#include <algorithm>
#include <cmath>

namespace taeda::native {

namespace {

template <class T>
FftPass<T> make_pass(FftKind kind,
                     bool forward,
                     double factor,
                     const Tensor& in,
                     const Tensor& out,
                     int64_t dim) {
  int64_t in_unit = is_complex(in.dtype()) ? 2 : 1;
  int64_t out_unit = is_complex(out.dtype()) ? 2 : 1;
  FftPass<T> pass;
  pass.kind = kind;
  pass.forward = forward;
  pass.factor = factor;
  pass.n = kind == FftKind::kToReal ? out.size(dim) : in.size(dim);
  pass.in = in.const_data<T>();
  pass.out = out.mutable_data<T>();
  pass.in_step = in.stride(dim) * in_unit;
  pass.out_step = out.stride(dim) * out_unit;
  DimVector order;
  for (int64_t d = 0; d < in.dim(); ++d) {
    if (d != dim && in.size(d) != 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return out.stride(a) > out.stride(b);
  });
  for (int64_t d : order) {
    pass.add_dim(in.size(d), in.stride(d) * in_unit, out.stride(d) * out_unit);
  }
  return pass;
}

void run_pass(FftKind kind,
              bool forward,
              double factor,
              const Tensor& in,
              const Tensor& out,
              int64_t dim) {
  if (out.numel() == 0) return;
  if (real_type_of(out.dtype()) == kFloat) {
    run_fft_pass(make_pass<float>(kind, forward, factor, in, out, dim));
  } else {
    run_fft_pass(make_pass<double>(kind, forward, factor, in, out, dim));
  }
}

double factor_of(IntArrayRef sizes, IntArrayRef dims, int64_t normalization) {
  double count = 1;
  for (int64_t d : dims)
    count *= static_cast<double>(sizes[static_cast<size_t>(
        wrap_dim(d, static_cast<int64_t>(sizes.size())))]);
  if (normalization == 0) return 1;
  return 1 / (normalization == 1 ? std::sqrt(count) : count);
}

Tensor resolved(const Tensor& t) {
  return t.is_conj() || t.is_neg() ? Tensor(contiguous(t)) : t;
}

// The last dim first; a copy where there is none.
void complex_passes(const Tensor& in,
                    const Tensor& out,
                    IntArrayRef dims,
                    bool forward,
                    double factor) {
  if (dims.empty()) return copy_into(out, in);
  for (size_t i = dims.size(); i-- > 0; factor = 1) {
    const Tensor& from = i + 1 == dims.size() ? in : out;
    run_pass(FftKind::kComplex,
             forward,
             factor,
             from,
             out,
             wrap_dim(dims[i], in.dim()));
  }
}

}  // namespace

void fft_c2c_cpu(const Tensor& self,
                 IntArrayRef dim,
                 int64_t normalization,
                 bool forward,
                 const Tensor& out) {
  double factor = factor_of(self.sizes(), dim, normalization);
  complex_passes(resolved(self), out, dim, forward, factor);
}

void fft_r2c_cpu(const Tensor& self,
                 IntArrayRef dim,
                 int64_t normalization,
                 bool onesided,
                 const Tensor& out) {
  double factor = factor_of(self.sizes(), dim, normalization);
  if (dim.empty()) return copy_into(out, self);
  IntArrayRef others = dim.slice(0, dim.size() - 1);
  run_pass(onesided ? FftKind::kFromReal : FftKind::kWholeFromReal,
           true,
           factor,
           resolved(self),
           out,
           wrap_dim(dim.back(), self.dim()));
  if (!others.empty()) complex_passes(out, out, others, true, 1);
}

void fft_c2r_cpu(const Tensor& self,
                 IntArrayRef dim,
                 int64_t normalization,
                 int64_t last_dim_size,
                 const Tensor& out) {
  double factor = factor_of(out.sizes(), dim, normalization);
  IntArrayRef others = dim.slice(0, dim.size() - 1);
  Tensor half = resolved(self);
  if (!others.empty()) {
    half = ops::clone(half, MemoryFormat::Contiguous);
    complex_passes(half, half, others, false, 1);
  }
  run_pass(FftKind::kToReal,
           false,
           factor,
           half,
           out,
           wrap_dim(dim.back(), self.dim()));
}

}  // namespace taeda::native
