// Distances between all rows of one or two matrices.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/distances.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_cdist_backward.h>
#include <taeda/gen/native/_cdist_forward.h>
#include <taeda/gen/native/_pdist_backward.h>
#include <taeda/gen/native/_pdist_forward.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace taeda::native {

namespace {

template <class T>
RowDistances<T> rows_of(double p, int64_t width) {
  NormKind kind = p == 0          ? NormKind::kZero
                  : p == 1        ? NormKind::kOne
                  : p == 2        ? NormKind::kTwo
                  : std::isinf(p) ? NormKind::kMax
                                  : NormKind::kAny;
  return {kind, static_cast<T>(p), width, /*pairs=*/false, /*step=*/0};
}

template <class T>
const DistanceKernels<T>& kernels() {
  return TAEDA_ISA_TABLE(kDistanceTable).of(T{});
}

template <class F>
void visit_distances(std::string_view op, ScalarType type, F&& f) {
  if (type == kFloat) return f(float{});
  if (type == kDouble) return f(double{});
  not_implemented_for(op, type);
}

struct Matrices {
  int64_t batch = 1, n, m, width;
};

Matrices matrices_of(const Tensor& x1, const Tensor& x2) {
  Matrices s{1, x1.size(-2), x2.size(-2), x1.size(-1)};
  for (int64_t d = 0; d + 2 < x1.dim(); ++d) s.batch *= x1.sizes()[d];
  return s;
}

int64_t grain_of(int64_t work) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1));
}

// Calls f(matrix, begin, end) for rows [begin, end) of each.
template <class F>
void for_rows(const Matrices& s, F&& f) {
  int64_t grain = grain_of(s.m * s.width);
  parallel_for(0, s.batch * s.n, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t matrix = begin / s.n, row = begin % s.n;
      int64_t stop = std::min(s.n, row + end - begin);
      f(matrix, row, stop);
      begin += stop - row;
    }
  });
}

template <class T>
void by_differences(
    double p, const Matrices& s, const T* a, const T* b, T* out) {
  RowDistances<T> how = rows_of<T>(p, s.width);
  how.step = s.m;
  for_rows(s, [&](int64_t matrix, int64_t begin, int64_t end) {
    kernels<T>().distances(how,
                           a + matrix * s.n * s.width,
                           begin,
                           end,
                           b + matrix * s.m * s.width,
                           s.m,
                           out + matrix * s.n * s.m);
  });
}

// Note [Distances by products] in kernels/distances.cpp.
template <class T>
void by_products(const Matrices& s, const T* a, const T* b, T* out) {
  blas::gemm_batched<T>(blas::Op::kNone,
                        blas::Op::kTrans,
                        s.batch,
                        s.n,
                        s.m,
                        s.width,
                        T(-2),
                        a,
                        s.width,
                        b,
                        s.width,
                        T(0),
                        out,
                        s.m,
                        {s.n * s.width, s.m * s.width, s.n * s.m});
  std::vector<T> a2(static_cast<size_t>(s.batch * s.n));
  std::vector<T> b2(static_cast<size_t>(s.batch * s.m));
  kernels<T>().squares(a, s.batch * s.n, s.width, a2.data());
  kernels<T>().squares(b, s.batch * s.m, s.width, b2.data());
  for_rows(s, [&](int64_t matrix, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t row = matrix * s.n + i;
      kernels<T>().finish(a + row * s.width,
                          a2[static_cast<size_t>(row)],
                          b + matrix * s.m * s.width,
                          b2.data() + matrix * s.m,
                          s.m,
                          s.width,
                          out + row * s.m);
    }
  });
}

// Below a width the products save no time; PyTorch's modes say when they may.
bool wants_products(const Matrices& s, double p, int64_t mode) {
  constexpr int64_t kLeastWidth = 32, kLeastRows = 25;
  if (p != 2 || s.width < kLeastWidth) return false;
  return mode == 1 || (mode == 0 && std::max(s.n, s.m) > kLeastRows);
}

}  // namespace

void _cdist_forward_cpu(const Tensor& x1,
                        const Tensor& x2,
                        double p,
                        std::optional<int64_t> mode,
                        const Tensor& out) {
  Tensor a = contiguous(x1), b = contiguous(x2);
  Matrices s = matrices_of(a, b);
  visit_distances("cdist", a.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T *from = a.const_data<T>(), *others = b.const_data<T>();
    if (wants_products(s, p, mode.value_or(0))) {
      return by_products(s, from, others, out.mutable_data<T>());
    }
    by_differences(p, s, from, others, out.mutable_data<T>());
  });
}

void _cdist_backward_cpu(const Tensor& grad,
                         const Tensor& x1,
                         const Tensor& x2,
                         double p,
                         const Tensor& cdist,
                         const Tensor& out) {
  Tensor a = contiguous(x1), b = contiguous(x2);
  Tensor g = contiguous(grad), d = contiguous(cdist);
  Matrices s = matrices_of(a, b);
  visit_distances("cdist_backward", a.dtype(), [&](auto tag) {
    using T = decltype(tag);
    RowDistances<T> how = rows_of<T>(p, s.width);
    for_rows(s, [&](int64_t matrix, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t row = matrix * s.n + i;
        kernels<T>().slopes(how,
                            a.const_data<T>() + row * s.width,
                            b.const_data<T>() + matrix * s.m * s.width,
                            s.m,
                            g.const_data<T>() + row * s.m,
                            d.const_data<T>() + row * s.m,
                            out.mutable_data<T>() + row * s.width);
      }
    });
  });
}

void _pdist_forward_cpu(const Tensor& self, double p, const Tensor& out) {
  Tensor x = contiguous(self);
  int64_t n = x.sizes()[0], width = x.sizes()[1];
  visit_distances("pdist", x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    RowDistances<T> how = rows_of<T>(p, width);
    how.pairs = true;
    how.step = n;
    const T* rows = x.const_data<T>();
    T* to = out.mutable_data<T>();
    parallel_for(0, n, grain_of(n * width), [&](int64_t begin, int64_t end) {
      kernels<T>().distances(how, rows, begin, end, rows, n, to);
    });
  });
}

namespace {

// Row i of a symmetric matrix of which the pairs j > i are given.
template <class T>
void symmetric_row(const T* pairs, int64_t n, int64_t i, T* row) {
  for (int64_t j = 0; j < n; ++j) {
    int64_t low = std::min(i, j), high = std::max(i, j);
    int64_t at = low * n - low * (low + 3) / 2 - 1 + high;
    row[j] = i == j ? T(0) : pairs[at];
  }
}

}  // namespace

void _pdist_backward_cpu(const Tensor& grad,
                         const Tensor& self,
                         double p,
                         const Tensor& pdist,
                         const Tensor& out) {
  Tensor x = contiguous(self), g = contiguous(grad), d = contiguous(pdist);
  int64_t n = x.sizes()[0], width = x.sizes()[1];
  visit_distances("pdist_backward", x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    RowDistances<T> how = rows_of<T>(p, width);
    const T* rows = x.const_data<T>();
    parallel_for(0, n, grain_of(n * width), [&](int64_t begin, int64_t end) {
      std::vector<T> slope(static_cast<size_t>(n)), distance(slope);
      for (int64_t i = begin; i < end; ++i) {
        symmetric_row(g.const_data<T>(), n, i, slope.data());
        symmetric_row(d.const_data<T>(), n, i, distance.data());
        kernels<T>().slopes(how,
                            rows + i * width,
                            rows,
                            n,
                            slope.data(),
                            distance.data(),
                            out.mutable_data<T>() + i * width);
      }
    });
  });
}

}  // namespace taeda::native
