// QR decompositions and the orthogonal matrices that reflections make.
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/aten/native/linalg/reflected.h>
#include <taeda/gen/native/geqrf.h>
#include <taeda/gen/native/linalg_householder_product.h>
#include <taeda/gen/native/linalg_qr.h>
#include <taeda/gen/ops/geqrf.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/triu.h>

#include <algorithm>

namespace taeda::native {

using blas::Int;
using blas::lapack;

template <class I>
void geqrf_shape(const Spec<I>& self, Plan<I>& plan) {
  check_matrices("geqrf", self);
  I m = self.size(-2), n = self.size(-1);
  plan_matrices_row_major_out(plan, 0, batch_sizes(self), m, n, self.dtype());
  plan.set(1, vectors_of(self, std::min(m, n)), self.dtype());
}
TAEDA_SHAPE(geqrf_shape);

void geqrf_cpu(const Tensor& self, const Tensor& a, const Tensor& tau) {
  copy_into(a, self);
  Int m = rows_of(a), n = columns_of(a), k = std::min(m, n), lda = leading(m);
  if (a.numel() == 0) return;
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    with_workspace<T>([&](T* work, Int size) {
      Int info = 0;
      for (int64_t b = 0, all = size < 0 ? 1 : batch_count(a); b < all; ++b) {
        lapack<T>().geqrf(&m,
                          &n,
                          item<T>(a, b, int64_t{m} * n),
                          &lda,
                          item<T>(tau, b, k),
                          work,
                          &size,
                          &info);
      }
    });
  });
}

template <class I>
void linalg_householder_product_shape(const Spec<I>& input,
                                      const Spec<I>& tau,
                                      Plan<I>& plan) {
  constexpr std::string_view op = "linalg.householder_product";
  check_matrices(op, input);
  TAEDA_CHECK(input.size(-2) >= input.size(-1),
              op,
              ": input.shape[-2] must be greater than or equal to "
              "input.shape[-1], got ",
              input.sizes());
  Dims<I> expected(batch_sizes(input));
  TAEDA_CHECK(
      tau.dim() == input.dim() - 1 && tau.dtype() == input.dtype() &&
          tau.sizes().slice(0, expected.size()) == ArrayRef<I>(expected) &&
          tau.size(-1) <= input.size(-1),
      op,
      ": expected tau of dtype ",
      input.dtype(),
      " with the batch of input and at most as many elements as it has "
      "columns, got input ",
      input.sizes(),
      " and tau ",
      tau.sizes(),
      " of ",
      tau.dtype());
  plan_matrices_row_major_out(plan,
                              0,
                              batch_sizes(input),
                              input.size(-2),
                              input.size(-1),
                              input.dtype());
}
TAEDA_SHAPE(linalg_householder_product_shape);

void linalg_householder_product_cpu(const Tensor& input,
                                    const Tensor& tau,
                                    const Tensor& q) {
  copy_into(q, input);
  Tensor factors = contiguous(tau);
  Int m = rows_of(q), n = columns_of(q), k = static_cast<Int>(tau.size(-1));
  Int lda = leading(m);
  if (q.numel() == 0) return;
  visit_lapack(q.dtype(), [&](auto t) {
    using T = decltype(t);
    with_workspace<T>([&](T* work, Int size) {
      Int info = 0;
      for (int64_t b = 0, all = size < 0 ? 1 : batch_count(q); b < all; ++b) {
        lapack<T>().orgqr(&m,
                          &n,
                          &k,
                          item<T>(q, b, int64_t{m} * n),
                          &lda,
                          item<T>(factors, b, k),
                          work,
                          &size,
                          &info);
      }
    });
  });
}

namespace {

// By LAPACK, for any number of columns of Q; Q is not computed where it is
// undefined.
void qr_by_lapack(const Tensor& a, const Tensor& q, const Tensor& r) {
  auto [packed, tau] = ops::geqrf(a);
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  copy_into(r, ops::triu(ops::narrow(packed, -2, 0, r.size(-2))));
  if (!q.defined()) return;
  int64_t wide = q.size(-1);
  Tensor below = new_matrices("linalg.qr", batch_sizes(a), m, wide, a);
  if (n > 0)
    copy_into(ops::narrow(below, -1, 0, k), ops::narrow(packed, -1, 0, k));
  if (wide > k) {
    // orgqr reads the first k columns only; the others need a value all the
    // same, for householder_product copies them.
    Tensor rest = ops::narrow(below, -1, k, wide - k);
    fill_with(rest, Scalar(0.0));
  }
  linalg_householder_product_cpu(below, tau, q);
}

// Matrix i of `a` by LAPACK.
template <class T>
void one_by_lapack(const MatrixReader<T>& reader,
                   int64_t i,
                   const Tensor& a,
                   const Tensor& q,
                   const Tensor& r) {
  constexpr std::string_view op = "linalg.qr";
  Tensor one = new_matrices(op, {}, a.size(-2), a.size(-1), a);
  reader.copy(i, one.mutable_data<T>(), a.size(-2), a.size(-1));
  auto like = [&](const Tensor& t) {
    return new_matrices(op, {}, t.size(-2), t.size(-1), t);
  };
  auto put = [&](const Tensor& from, const Tensor& to) {
    int64_t rows = to.size(-2), columns = to.size(-1);
    T* place = item<T>(to, i, rows * columns);
    MatrixReader<T>(from).copy(0, place, rows, columns);
  };
  Tensor new_q = q.defined() ? like(q) : q, new_r = like(r);
  qr_by_lapack(one, new_q, new_r);
  put(new_r, r);
  if (q.defined()) put(new_q, q);
}

// Q of r.size(-2) columns, if it is wanted, and R. Matrices that lanes leave
// undecided come from LAPACK.
template <class T>
void qr_in_lanes(const Tensor& a, const Tensor& q, const Tensor& r) {
  MatrixReader<T> reader(a);
  SmallBatch<T> job;
  job.count = batch_count(a);
  job.rows = rows_of(a);
  job.columns = columns_of(a);
  job.right = rows_of(r);
  if (q.defined()) job.first = column_major_results<T>(q);
  job.second = column_major_results<T>(r);
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSpectra).of<T>();
  run_in_lanes<T>(kernels.qr, job, reader, {}, 0, 0, [&](int64_t i) {
    one_by_lapack<T>(reader, i, a, q, r);
  });
}

// The first rows and columns of `from`, column-major, to `to`.
template <class T>
void put_columns(const AlignedMatrix<T>& from,
                 T* to,
                 int64_t rows,
                 int64_t columns) {
  copy_strided(reinterpret_cast<char*>(to),
               {1, rows},
               reinterpret_cast<const char*>(from.row(0)),
               {from.stride(), 1},
               {rows, columns},
               scalar_type_of<T>);
}

// The same by our own reflections.
template <class T>
void qr_by_reflections(const Tensor& a, const Tensor& q, const Tensor& r) {
  MatrixReader<T> reader(a);
  int64_t m = a.size(-2), n = a.size(-1), rows = r.size(-2);
  each_matrix(batch_count(a), m, n, [&](int64_t i) {
    AlignedMatrix<T> matrix(m, n);
    reader.copy_rows(i, matrix.row(0), matrix.stride());
    Reflected<T> reflected(matrix, std::min(m, n));
    if (!reflected.ok()) return one_by_lapack<T>(reader, i, a, q, r);
    T* upper = item<T>(r, i, rows * n);
    put_columns(matrix, upper, rows, n);
    for (int64_t c = 0; c + 1 < rows && c < n; ++c) {
      std::fill(upper + c * rows + c + 1, upper + (c + 1) * rows, T(0));
    }
    if (!q.defined()) return;
    AlignedMatrix<T> product(m, q.size(-1));
    reflected.product(product);
    put_columns(product, item<T>(q, i, m * q.size(-1)), m, q.size(-1));
  });
}

}  // namespace

template <class I>
void linalg_qr_shape(const Spec<I>& a, std::string_view mode, Plan<I>& plan) {
  TAEDA_CHECK(mode == "reduced" || mode == "complete" || mode == "r",
              "qr received unrecognized mode '",
              mode,
              "' but expected one of 'reduced' (default), 'r', or 'complete'");
  check_matrices("linalg.qr", a);
  I m = a.size(-2), n = a.size(-1);
  I columns = mode == "complete" ? m : std::min(m, n);
  if (mode == "r") {
    plan.set(0, {0}, a.dtype());
  } else {
    plan_matrices(plan, 0, batch_sizes(a), m, columns, a.dtype());
  }
  plan_matrices(plan, 1, batch_sizes(a), columns, n, a.dtype());
}
TAEDA_SHAPE(linalg_qr_shape);

void linalg_qr_cpu(const Tensor& a,
                   std::string_view mode,
                   const Tensor& q,
                   const Tensor& r) {
  int64_t m = a.size(-2), n = a.size(-1), count = batch_count(a);
  Tensor wanted = mode == "r" ? Tensor() : q;
  if (a.numel() == 0) return qr_by_lapack(a, wanted, r);
  Tensor from = readable(a);
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    int lanes = TAEDA_ISA_TABLE(kSmallSpectra).of<T>().lanes;
    if (in_lanes(count, m, n, lanes)) return qr_in_lanes<T>(from, wanted, r);
    if constexpr (std::is_same_v<T, blas::real_t<T>>) {
      qr_by_reflections<T>(from, wanted, r);
    } else {
      qr_by_lapack(a, wanted, r);
    }
  });
}

}  // namespace taeda::native
