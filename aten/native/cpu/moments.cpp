// var, std, var_mean, std_mean: Welford's sums over rows or columns.
#include <taeda/aten/iter/reduce.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/moments.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/native/moments.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/std.h>
#include <taeda/gen/native/std_mean.h>
#include <taeda/gen/native/var.h>
#include <taeda/gen/native/var_mean.h>
#include <taeda/gen/ops/add.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace taeda::native {

namespace {

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
void each_moments(const AlongDim& frame, F&& f) {
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

// How many degrees of freedom are taken off, and whether the root is wanted.
struct SpreadOf {
  double taken;
  bool root;
};

// `mean` may be undefined: it is not wanted.
void real_spread(const Tensor& self,
                 DimList dims,
                 const SpreadOf& how,
                 const Tensor& spread,
                 const Tensor& mean) {
  if (spread.numel() == 0) return;
  ScalarType type = self.dtype() == kDouble ? kDouble : kFloat;
  AlongDim frame = along_dim(self, dims, type);
  RowMajor spreads(spread, type), means(mean, type);
  auto run = [&](auto tag) {
    using T = decltype(tag);
    T* to = spreads.tensor().mutable_data<T>();
    T* centre = mean.defined() ? means.tensor().mutable_data<T>() : nullptr;
    each_moments<T>(frame, [&](int64_t i, const Moments& m) {
      double freedom = std::max(m.count - how.taken, 0.0);
      double variance = m.squares / freedom;
      to[i] = static_cast<T>(how.root ? std::sqrt(variance) : variance);
      if (centre == nullptr) return;
      bool none = m.count == 0;
      centre[i] = static_cast<T>(none ? std::numeric_limits<double>::quiet_NaN()
                                      : m.mean);
    });
  };
  type == kDouble ? run(double{}) : run(float{});
  spreads.finish();
  means.finish();
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

// The variances of the parts add up.
void complex_spread(const Tensor& self,
                    DimList dims,
                    const SpreadOf& how,
                    const Tensor& spread,
                    const Tensor& mean) {
  ScalarType real = real_type_of(self.dtype());
  Tensor variance[2], centre[2];
  for (int64_t part = 0; part < 2; ++part) {
    variance[part] = make_tensor("var", spread.sizes(), real);
    centre[part] = make_tensor("var", spread.sizes(), real);
    SpreadOf plain{how.taken, /*root=*/false};
    real_spread(part_of(self, part), dims, plain, variance[part], centre[part]);
    centre[part] = contiguous_as(centre[part], kDouble);
  }
  Tensor sum = contiguous_as(ops::add(variance[0], variance[1]), kDouble);
  double* to = sum.mutable_data<double>();
  for (int64_t i = 0; how.root && i < sum.numel(); ++i)
    to[i] = std::sqrt(to[i]);
  copy_into(spread, sum);
  if (!mean.defined()) return;
  Tensor both = make_tensor("var", mean.sizes(), kComplexDouble);
  for (int64_t i = 0; i < both.numel(); ++i) {
    both.mutable_data<complex<double>>()[i] = {
        centre[0].const_data<double>()[i], centre[1].const_data<double>()[i]};
  }
  copy_into(mean, both);
}

void warn_of_freedom(std::string_view op,
                     const Tensor& self,
                     DimList dims,
                     double taken) {
  double count = 1;
  uint64_t mask = dim_mask(dims, self.dim());
  for (int64_t d = 0; d < self.dim(); ++d) {
    if ((mask >> d) & 1) count *= static_cast<double>(self.sizes()[d]);
  }
  if (count > taken || self.numel() == 0) return;
  warn(str_cat(op,
               "(): degrees of freedom is <= 0. Correction should be "
               "strictly less than the reduction factor (input numel divided "
               "by output numel)."));
}

void spread_into(std::string_view op,
                 const Tensor& self,
                 DimList dims,
                 const Correction& correction,
                 bool root,
                 const Tensor& spread,
                 const Tensor& mean) {
  SpreadOf how{correction ? correction->to_double() : 1.0, root};
  warn_of_freedom(op, self, dims, how.taken);
  self.is_complex() ? complex_spread(self, dims, how, spread, mean)
                    : real_spread(self, dims, how, spread, mean);
}

}  // namespace

void var_cpu(const Tensor& self,
             DimList dim,
             const Correction& correction,
             bool,
             const Tensor& out) {
  spread_into("var", self, dim, correction, /*root=*/false, out, {});
}

void var_mean_cpu(const Tensor& self,
                  DimList dim,
                  const Correction& correction,
                  bool,
                  const Tensor& out,
                  const Tensor& mean) {
  spread_into("var_mean", self, dim, correction, /*root=*/false, out, mean);
}

void std_cpu(const Tensor& self,
             DimList dim,
             const Correction& correction,
             bool,
             const Tensor& out) {
  spread_into("std", self, dim, correction, /*root=*/true, out, {});
}

void std_mean_cpu(const Tensor& self,
                  DimList dim,
                  const Correction& correction,
                  bool,
                  const Tensor& out,
                  const Tensor& mean) {
  spread_into("std_mean", self, dim, correction, /*root=*/true, out, mean);
}

}  // namespace taeda::native
