// Writes to places that tensors name, in parallel and in the same order each
// time.
#pragma once

#include <taeda/aten/native/cuda/given.h>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

// As combined() of indexing.cuh counts them.
enum class Combine : int64_t { Set, Add, Multiply, Largest, Smallest };

struct NamedWrite {
  const char* op;
  int64_t dim;  // from 0 on
  Tensor index;
  Tensor source{};   // or a number, of elements
  Scalar value = 1;  // that number, or a factor of rows
  Combine how = Combine::Set;
  Tensor seen{};  // counts what came to each element, or row
};

// result[..., index[k], ...] is changed by source[..., k, ...].
void write_rows(const NamedWrite& write, const Tensor& result);
// result[..., index[e], ...] is changed by source[e].
void write_elements(const NamedWrite& write, const Tensor& result);

}  // namespace taeda::cuda
