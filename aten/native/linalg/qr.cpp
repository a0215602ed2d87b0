// QR decompositions and the orthogonal matrices that reflections make.
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/gen/native/geqrf.h>
#include <taeda/gen/native/linalg_householder_product.h>
#include <taeda/gen/native/linalg_qr.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/triu.h>

#include <algorithm>

namespace taeda::native {

using blas::Int;
using blas::lapack;

std::tuple<Tensor, Tensor> geqrf(const Tensor& self) {
  check_matrices("geqrf", self);
  Tensor a = column_major("geqrf", self);
  Int m = rows_of(a), n = columns_of(a), k = std::min(m, n), lda = leading(m);
  DimVector sizes(batch_sizes(a));
  sizes.push_back(k);
  Tensor tau = make_tensor("geqrf", sizes, a.dtype(), a.device());
  if (a.numel() == 0) return {a, tau};
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
  return {a, tau};
}

Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  constexpr std::string_view op = "linalg.householder_product";
  check_matrices(op, input);
  TAEDA_CHECK(input.size(-2) >= input.size(-1),
              op,
              ": input.shape[-2] must be greater than or equal to "
              "input.shape[-1], got ",
              input.sizes());
  DimVector expected(batch_sizes(input));
  TAEDA_CHECK(
      tau.dim() == input.dim() - 1 && tau.dtype() == input.dtype() &&
          tau.sizes().slice(0, expected.size()) == IntArrayRef(expected) &&
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
  Tensor q = column_major(op, input);
  Tensor factors = make_tensor(op, tau.sizes(), tau.dtype(), tau.device());
  copy_into(factors, tau);
  Int m = rows_of(q), n = columns_of(q), k = static_cast<Int>(tau.size(-1));
  Int lda = leading(m);
  if (q.numel() == 0) return q;
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
  return q;
}

namespace {

// By LAPACK, for any number of columns of Q.
std::tuple<Tensor, Tensor> qr_by_lapack(const Tensor& a,
                                        std::string_view mode) {
  auto [packed, tau] = geqrf(a);
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  int64_t wide = mode == "complete" ? m : k;
  Tensor r = ops::triu(ops::narrow(packed, -2, 0, wide == m ? m : k));
  if (mode == "r") return {make_tensor("linalg.qr", {0}, a.dtype()), r};
  Tensor below = new_matrices("linalg.qr", batch_sizes(a), m, wide, a);
  if (n > 0)
    copy_into(ops::narrow(below, -1, 0, k), ops::narrow(packed, -1, 0, k));
  if (wide > k) {
    // orgqr reads the first k columns only; the others need a value all the
    // same, for householder_product copies them.
    Tensor rest = ops::narrow(below, -1, k, wide - k);
    fill_with(rest, Scalar(0.0));
  }
  return {linalg_householder_product(below, tau), r};
}

// Q of r.size(-2) columns, if it is wanted, and R. Matrices that lanes leave
// undecided come from LAPACK.
template <class T>
void qr_in_lanes(const Tensor& a,
                 const Tensor& q,
                 const Tensor& r,
                 std::string_view mode) {
  MatrixReader<T> reader(a);
  SmallBatch<T> job;
  job.count = batch_count(a);
  job.rows = rows_of(a);
  job.columns = columns_of(a);
  job.right = rows_of(r);
  if (q.defined()) job.first = column_major_results<T>(q);
  job.second = column_major_results<T>(r);
  auto again = [&](int64_t i) {
    Tensor one = new_matrices("linalg.qr", {}, a.size(-2), a.size(-1), a);
    reader.copy(i, one.mutable_data<T>(), a.size(-2), a.size(-1));
    auto [new_q, new_r] = qr_by_lapack(one, mode);
    MatrixReader<T>(new_r).copy(
        0, item<T>(r, i, job.second.step), r.size(-2), r.size(-1));
    if (!q.defined()) return;
    MatrixReader<T>(new_q).copy(
        0, item<T>(q, i, job.first.step), q.size(-2), q.size(-1));
  };
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSpectra).of<T>();
  run_in_lanes<T>(kernels.qr, job, reader, {}, 0, 0, again);
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_qr(const Tensor& a, std::string_view mode) {
  TAEDA_CHECK(mode == "reduced" || mode == "complete" || mode == "r",
              "qr received unrecognized mode '",
              mode,
              "' but expected one of 'reduced' (default), 'r', or 'complete'");
  check_matrices("linalg.qr", a);
  int64_t m = a.size(-2), n = a.size(-1), count = batch_count(a);
  bool small = false;
  visit_lapack(a.dtype(), [&](auto t) {
    int lanes = TAEDA_ISA_TABLE(kSmallSpectra).of<decltype(t)>().lanes;
    small = a.numel() > 0 && in_lanes(count, m, n, lanes);
  });
  if (!small) return qr_by_lapack(a, mode);
  int64_t columns = mode == "complete" ? m : std::min(m, n);
  Tensor r = new_matrices("linalg.qr", batch_sizes(a), columns, n, a), q;
  if (mode != "r") q = new_matrices("linalg.qr", batch_sizes(a), m, columns, a);
  Tensor from = readable(a);
  visit_lapack(a.dtype(),
               [&](auto t) { qr_in_lanes<decltype(t)>(from, q, r, mode); });
  if (!q.defined()) q = make_tensor("linalg.qr", {0}, a.dtype());
  return {q, r};
}

}  // namespace taeda::native
