// Products with the orthogonal matrix of a QR decomposition that is not formed.
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/gen/native/ormqr.h>
#include <taeda/gen/ops/narrow.h>

namespace taeda::native {

using blas::Int;
using blas::lapack;

template <class I>
void ormqr_shape(const Spec<I>& self,
                 const Spec<I>& tau,
                 const Spec<I>& other,
                 bool left,
                 bool,
                 Plan<I>& plan) {
  TAEDA_CHECK(self.dim() >= 2,
              "torch.ormqr: input must have at least 2 dimensions, got ",
              self.sizes());
  check_matrices("torch.ormqr", self);
  TAEDA_CHECK(other.dim() >= 2,
              "torch.ormqr: other must have at least 2 dimensions.");
  TAEDA_CHECK(other.size(left ? -2 : -1) >= tau.size(-1),
              "torch.ormqr: other.shape[",
              left ? -2 : -1,
              "] must be greater than or equal to tau.shape[-1]");
  TAEDA_CHECK(other.size(left ? -2 : -1) == self.size(-2),
              "torch.ormqr: other.shape[",
              left ? -2 : -1,
              "] must be equal to input.shape[-2]");
  TAEDA_CHECK(tau.size(-1) <= self.size(-1),
              "torch.ormqr: tau.shape[-1] must be less than or equal to "
              "input.shape[-1]");
  Dims<I> batch(batch_sizes(self));
  TAEDA_CHECK(
      tau.dim() == self.dim() - 1 && other.dim() == self.dim() &&
          tau.sizes().slice(0, batch.size()) == ArrayRef<I>(batch) &&
          batch_sizes(other) == ArrayRef<I>(batch),
      "torch.ormqr: Expected batch dimensions of tau and other to be equal to "
      "those of input, got ",
      self.sizes(),
      ", ",
      tau.sizes(),
      " and ",
      other.sizes());
  TAEDA_CHECK(tau.dtype() == self.dtype() && other.dtype() == self.dtype(),
              "torch.ormqr: Expected input, tau and other to have the same "
              "dtype, got ",
              self.dtype(),
              ", ",
              tau.dtype(),
              " and ",
              other.dtype());
  plan_matrices_row_major_out<I>(
      plan, 0, batch, other.size(-2), other.size(-1), other.dtype());
}
TAEDA_SHAPE(ormqr_shape);

void ormqr_cpu(const Tensor& self,
               const Tensor& tau,
               const Tensor& other,
               bool left,
               bool transpose,
               const Tensor& result) {
  Tensor out = column_major("torch.ormqr", other);
  Int m = rows_of(out), n = columns_of(out);
  Int k = static_cast<Int>(tau.size(-1)), lda = leading(rows_of(self));
  Int ldc = leading(m);
  if (out.numel() == 0 || k == 0) return copy_into(result, out);
  Tensor reflections = column_major("torch.ormqr", ops::narrow(self, -1, 0, k));
  Tensor factors = contiguous(tau);
  visit_lapack(out.dtype(), [&](auto t) {
    using T = decltype(t);
    constexpr bool complex = !std::is_same_v<T, blas::real_t<T>>;
    const char* turn = !transpose ? "N" : complex ? "C" : "T";
    with_workspace<T>([&](T* work, Int size) {
      Int info = 0;
      for (int64_t b = 0, all = size < 0 ? 1 : batch_count(out); b < all; ++b) {
        lapack<T>().ormqr(left ? "L" : "R",
                          turn,
                          &m,
                          &n,
                          &k,
                          item<T>(reflections, b, self.size(-2) * k),
                          &lda,
                          item<T>(factors, b, k),
                          item<T>(out, b, int64_t{m} * n),
                          &ldc,
                          work,
                          &size,
                          &info,
                          1,
                          1);
      }
    });
  });
  copy_into(result, out);
}

}  // namespace taeda::native
