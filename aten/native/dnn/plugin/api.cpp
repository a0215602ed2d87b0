// The one exported function of libtaeda_dnn.so.
#include <taeda/aten/native/dnn/dnn_api.h>
#include <taeda/c10/util/check.h>
#include <taeda/c10/util/macros.h>

#include "conv.h"
#include "matmul.h"
#include "runtime.h"

namespace taeda::dnn {
namespace {

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
  const ThreadScope threads;
  const SignalsHeld held;
  const dnnl_status_t status = dnnl_sgemm(trans_a ? 'T' : 'N',
                                          trans_b ? 'T' : 'N',
                                          m,
                                          n,
                                          k,
                                          alpha,
                                          a,
                                          lda,
                                          b,
                                          ldb,
                                          beta,
                                          c,
                                          ldc);
  TAEDA_CHECK(status == dnnl_success,
              "matmul: oneDNN refused a ",
              m,
              " x ",
              k,
              " by ",
              k,
              " x ",
              n,
              " product (status ",
              static_cast<int>(status),
              ")");
}

// oneDNN's errors as the library's own.
template <auto kFunction, typename... Args>
bool guarded(Args... args) {
  const ThreadScope threads;
  try {
    return kFunction(args...);
  } catch (const dnnl::error& error) {
    TAEDA_CHECK(false,
                "oneDNN: ",
                error.message,
                " (status ",
                static_cast<int>(error.status),
                ")");
  }
}

constexpr DnnApi kApi = {sgemm,
                         guarded<run_conv_forward>,
                         guarded<run_conv_backward_data>,
                         guarded<run_conv_backward_weights>,
                         guarded<run_matmul>};

}  // namespace
}  // namespace taeda::dnn

extern "C" TAEDA_API const taeda::dnn::DnnApi* taeda_dnn_api() {
  return &taeda::dnn::kApi;
}
