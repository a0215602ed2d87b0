// Arithmetic of reductions over the ranks' values.
#pragma once

#include <taeda/c10/core/scalar_type.h>

#include <cstddef>

namespace taeda::distributed {

// The numbers are those of `ReduceOp.RedOpType` in Python.
enum class ReduceOp : uint8_t { Sum, Avg, Product, Min, Max, Band, Bor, Bxor };
const char* name_of(ReduceOp op);

struct Reduction {
  ReduceOp op = ReduceOp::Sum;
  ScalarType dtype = kFloat;
  double factor = 1.0;  // of averages: sums are multiplied by it
};

// Raises where the operation has no meaning for the dtype: bitwise ones of
// floating values, orders of complex ones.
void check_reduction(const char* collective, const Reduction& r);

// out[i] = sources[0][i] op sources[1][i] op ..., from left to right, so that
// whoever computes it gets the same bits. Halves are added in float and rounded
// once. `out` may be one of the sources.
void reduce(const Reduction& r,
            void* out,
            const void* const* sources,
            size_t count,
            size_t elements);

}  // namespace taeda::distributed
