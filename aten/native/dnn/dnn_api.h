// The table that libtaeda_dnn.so hands to libtaeda.so: the only crossing
// between the two. Both come from one build, so it has no version.
#pragma once

#include <cstdint>

#include <taeda/aten/native/dnn/problems.h>

namespace taeda::dnn {

struct DnnApi {
  void (*sgemm)(bool trans_a,
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
                int64_t ldc);
  bool (*conv_forward)(const Conv& conv,
                       const void* src,
                       const void* weight,
                       WeightId id,
                       const void* bias,
                       void* dst);
  bool (*conv_backward_data)(const Conv& conv,
                             const void* diff_dst,
                             const void* weight,
                             WeightId id,
                             void* diff_src);
  bool (*conv_backward_weights)(const Conv& conv,
                                const void* src,
                                const void* diff_dst,
                                void* diff_weight,
                                void* diff_bias);
  bool (*matmul)(const MatMul& matmul,
                 const void* a,
                 const void* b,
                 WeightId b_id,
                 const void* bias,
                 void* c);
};

inline constexpr const char* kApiSymbol = "taeda_dnn_api";
using ApiFunction = const DnnApi* (*)();

}  // namespace taeda::dnn
