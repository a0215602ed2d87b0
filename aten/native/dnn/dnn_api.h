// The table that libtaeda_dnn.so hands to libtaeda.so: the only crossing
// between the two. Both come from one build, so it has no version.
#pragma once

#include <cstdint>

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
};

inline constexpr const char* kApiSymbol = "taeda_dnn_api";
using ApiFunction = const DnnApi* (*)();

}  // namespace taeda::dnn
