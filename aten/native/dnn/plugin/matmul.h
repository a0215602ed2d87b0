// Batched products with a bias, as in dnn.h.
#pragma once

#include <taeda/aten/native/dnn/problems.h>

namespace taeda::dnn {

bool run_matmul(const MatMul& matmul,
                const void* a,
                const void* b,
                WeightId b_id,
                const void* bias,
                void* c);

}  // namespace taeda::dnn
