#include <taeda/aten/native/dnn/dnn.h>

#include <taeda/aten/native/blas/load_library.h>
#include <taeda/aten/native/dnn/dnn_api.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/util/check.h>

namespace taeda::dnn {
namespace {

bool off() { return !settings::dnn_enabled.load(std::memory_order_relaxed); }

const DnnApi* load_api() {
  constexpr const char* kFile = "libtaeda_dnn.so";
  void* library = blas::load_library(
      kFile, "convolution, pooling and float32 matrix products");
  const auto function =
      reinterpret_cast<ApiFunction>(blas::find_symbol(library, kApiSymbol));
  TAEDA_CHECK(function != nullptr, kFile, " has no symbol ", kApiSymbol);
  return function();
}

const DnnApi& api() {
  static const DnnApi* const table = load_api();
  return *table;
}

}  // namespace

void sgemm(bool trans_a,
           bool trans_b,
           int64_t m,
           int64_t n,
           int64_t k,
           float alpha,
           const float* a,
           int64_t lda,
           const float* b,
           int64_t ldb,
           float beta,
           float* c,
           int64_t ldc) {
  api().sgemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

bool conv_forward(const Conv& conv,
                  const void* src,
                  const void* weight,
                  WeightId id,
                  const void* bias,
                  void* dst) {
  if (off()) return false;
  return api().conv_forward(conv, src, weight, id, bias, dst);
}

bool conv_backward_data(const Conv& conv,
                        const void* diff_dst,
                        const void* weight,
                        WeightId id,
                        void* diff_src) {
  if (off()) return false;
  return api().conv_backward_data(conv, diff_dst, weight, id, diff_src);
}

bool conv_backward_weights(const Conv& conv,
                           const void* src,
                           const void* diff_dst,
                           void* diff_weight,
                           void* diff_bias) {
  if (off()) return false;
  return api().conv_backward_weights(
      conv, src, diff_dst, diff_weight, diff_bias);
}

bool matmul(const MatMul& matmul,
            const void* a,
            const void* b,
            WeightId b_id,
            const void* bias,
            void* c) {
  if (off()) return false;
  return api().matmul(matmul, a, b, b_id, bias, c);
}

}  // namespace taeda::dnn
