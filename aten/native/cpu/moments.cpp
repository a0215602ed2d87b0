// var, std, var_mean, std_mean.
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/iter/reduce.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/moments.h>
#include <taeda/aten/native/dim_frame.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/std.h>
#include <taeda/gen/native/std_mean.h>
#include <taeda/gen/native/var.h>
#include <taeda/gen/native/var_mean.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/std.h>
#include <taeda/gen/ops/std_mean.h>
#include <taeda/gen/ops/var.h>
#include <taeda/gen/ops/var_mean.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace taeda::native {

namespace {

using Dims = std::optional<IntArrayRef>;
using Correction = std::optional<Scalar>;

constexpr int64_t kGrain = 32768;

template <class T>
const MomentKernels<T>& kernels() {
  static const MomentTable& table = TAEDA_ISA_TABLE(kMomentTable);
  if constexpr (sizeof(T) == 4) {
    return table.f32;
  } else {
    return table.f64;
  }
}

// One long row: parts of fixed length, so that the result does not depend on
// the number of threads.
template <class T>
Moments long_row(const T* in, int64_t n) {
  int64_t parts = (n + kGrain - 1) / kGrain;
  std::vector<Moments> each(static_cast<size_t>(parts));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t count = std::min(kGrain, n - p * kGrain);
      each[static_cast<size_t>(p)] = kernels<T>().row(in + p * kGrain, count);
    }
  });
  Moments all;
  for (const Moments& part : each) all.add(part);
  return all;
}

// f(index, moments) for every result.
template <class T, class F>
void each_moments(const DimFrame& frame, F&& f) {
  const T* in = frame.in<T>();
  if (frame.outer == 1 && frame.inner == 1 && frame.n > kGrain) {
    f(0, long_row(in, frame.n));
    return;
  }
  if (frame.inner == 1) {
    int64_t grain =
        std::max<int64_t>(1, kGrain / std::max<int64_t>(frame.n, 1));
    parallel_for(0, frame.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        f(o, kernels<T>().row(in + o * frame.n, frame.n));
      }
    });
    return;
  }
  int64_t width = std::min(frame.inner, kMomentColumns);
  int64_t blocks = (frame.inner + width - 1) / width;
  parallel_for(0, frame.outer * blocks, 1, [&](int64_t begin, int64_t end) {
    Moments found[kMomentColumns];
    for (int64_t b = begin; b < end; ++b) {
      int64_t outer = b / blocks, first = (b % blocks) * width;
      int64_t count = std::min(width, frame.inner - first);
      const T* at = in + outer * frame.n * frame.inner + first;
      kernels<T>().columns(at, frame.n, frame.inner, count, found);
      for (int64_t c = 0; c < count; ++c) {
        f(outer * frame.inner + first + c, found[c]);
      }
    }
  });
}

struct Spread {
  Tensor spread;  // variance or standard deviation
  Tensor mean;
};

Spread real_spread(
    const Tensor& self, Dims dims, double correction, bool keepdim, bool root) {
  uint64_t mask = dim_mask(dims, self.dim());
  DimVector shape = reduced_shape(self.sizes(), mask, keepdim);
  ScalarType type = self.dtype() == kDouble ? kDouble : kFloat;
  Spread out{make_tensor("var", shape, type, self.device()),
             make_tensor("var", shape, type, self.device())};
  if (self.is_meta() || out.mean.numel() == 0) return out;
  DimFrame frame = frame_of(self, dims, type);
  auto run = [&](auto tag) {
    using T = decltype(tag);
    T* spread = out.spread.mutable_data<T>();
    T* mean = out.mean.mutable_data<T>();
    each_moments<T>(frame, [&](int64_t i, const Moments& m) {
      double freedom = std::max(m.count - correction, 0.0);
      double variance = m.squares / freedom;
      bool none = m.count == 0;
      spread[i] = static_cast<T>(root ? std::sqrt(variance) : variance);
      mean[i] = static_cast<T>(none ? std::numeric_limits<double>::quiet_NaN()
                                    : m.mean);
    });
  };
  type == kDouble ? run(double{}) : run(float{});
  out.spread = cast(out.spread, self.dtype());
  out.mean = cast(out.mean, self.dtype());
  return out;
}

// The parts of a complex tensor as one real view each.
Tensor part_of(const Tensor& self, int64_t part) {
  Tensor plain = contiguous(self);
  ScalarType real = real_type_of(self.dtype());
  DimVector strides(plain.strides());
  for (int64_t& s : strides) s *= 2;
  return make_view_as(plain,
                      real,
                      plain.sizes(),
                      strides,
                      2 * plain.storage_offset() + part,
                      nullptr);
}

Spread complex_spread(
    const Tensor& self, Dims dims, double correction, bool keepdim, bool root) {
  Spread re = real_spread(part_of(self, 0), dims, correction, keepdim, false);
  Spread im = real_spread(part_of(self, 1), dims, correction, keepdim, false);
  Tensor sum = contiguous_as(ops::add(re.spread, im.spread), kDouble);
  Tensor mean = make_tensor("var", re.mean.sizes(), kComplexDouble);
  Tensor a = contiguous_as(re.mean, kDouble),
         b = contiguous_as(im.mean, kDouble);
  for (int64_t i = 0; i < mean.numel(); ++i) {
    mean.mutable_data<complex<double>>()[i] = {a.const_data<double>()[i],
                                               b.const_data<double>()[i]};
    double& v = sum.mutable_data<double>()[i];
    if (root) v = std::sqrt(v);
  }
  return {cast(sum, real_type_of(self.dtype())), cast(mean, self.dtype())};
}

Spread spread_of(std::string_view op,
                 const Tensor& self,
                 Dims dims,
                 const Correction& correction,
                 bool keepdim,
                 bool root) {
  TAEDA_CHECK(self.is_floating_point() || self.is_complex(),
              op,
              ": std and var only support floating point and complex dtypes, "
              "got ",
              self.dtype());
  double taken = correction ? correction->to_double() : 1.0;
  double count = 1;
  uint64_t mask = dim_mask(dims, self.dim());
  for (int64_t d = 0; d < self.dim(); ++d) {
    if ((mask >> d) & 1) count *= static_cast<double>(self.sizes()[d]);
  }
  if (count <= taken && self.numel() > 0) {
    warn(str_cat(op,
                 "(): degrees of freedom is <= 0. Correction should be "
                 "strictly less than the reduction factor (input numel divided "
                 "by output numel)."));
  }
  return self.is_complex() ? complex_spread(self, dims, taken, keepdim, root)
                           : real_spread(self, dims, taken, keepdim, root);
}

Correction correction_of(bool unbiased) {
  return Scalar(int64_t{unbiased ? 1 : 0});
}

}  // namespace

Tensor var_correction(const Tensor& self,
                      Dims dim,
                      const Correction& correction,
                      bool keepdim) {
  return spread_of("var", self, dim, correction, keepdim, false).spread;
}
Tensor std_correction(const Tensor& self,
                      Dims dim,
                      const Correction& correction,
                      bool keepdim) {
  return spread_of("std", self, dim, correction, keepdim, true).spread;
}
std::tuple<Tensor, Tensor> var_mean_correction(const Tensor& self,
                                               Dims dim,
                                               const Correction& correction,
                                               bool keepdim) {
  Spread s = spread_of("var_mean", self, dim, correction, keepdim, false);
  return {s.spread, s.mean};
}
std::tuple<Tensor, Tensor> std_mean_correction(const Tensor& self,
                                               Dims dim,
                                               const Correction& correction,
                                               bool keepdim) {
  Spread s = spread_of("std_mean", self, dim, correction, keepdim, true);
  return {s.spread, s.mean};
}

Tensor var(const Tensor& self, bool unbiased) {
  return ops::var(self, std::nullopt, correction_of(unbiased), false);
}
Tensor var(const Tensor& self, Dims dim, bool unbiased, bool keepdim) {
  return ops::var(self, dim, correction_of(unbiased), keepdim);
}
Tensor std(const Tensor& self, bool unbiased) {
  return ops::std(self, std::nullopt, correction_of(unbiased), false);
}
Tensor std(const Tensor& self, Dims dim, bool unbiased, bool keepdim) {
  return ops::std(self, dim, correction_of(unbiased), keepdim);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased) {
  return ops::var_mean(self, std::nullopt, correction_of(unbiased), false);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self,
                                    Dims dim,
                                    bool unbiased,
                                    bool keepdim) {
  return ops::var_mean(self, dim, correction_of(unbiased), keepdim);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased) {
  return ops::std_mean(self, std::nullopt, correction_of(unbiased), false);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self,
                                    Dims dim,
                                    bool unbiased,
                                    bool keepdim) {
  return ops::std_mean(self, dim, correction_of(unbiased), keepdim);
}

}  // namespace taeda::native
