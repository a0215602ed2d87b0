// Matrix products by cuBLASLt.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::cuda {

// Note [Products by cuBLASLt]
// The library sees matrices column by column, ours lie row by row: what it is
// asked for is the transposed result, the product of the transposed sides in
// the other order. A side that lies column by column is read as it is, with a
// transposition (and conjugation) of the library's; one of other strides is
// copied before. Alignments are part of a problem: kernels for 16-byte accesses
// may be chosen for aligned memory alone.
//
// What the library chooses for a problem is kept, up to kMostProblems for each
// device; that it has no kernel is kept too. Workspace is taken for each call
// from the allocator, on the current stream, and given back at once: what comes
// later in the stream may have it.
//
// Where there is no library, or it has no kernel for a problem, `multiply`
// answers false and the operator runs our own kernel (products.cuh). Of a
// missing library is warned once.
struct Side {
  const void* data = nullptr;
  int64_t row_stride = 0, column_stride = 0, batch_stride = 0;
  bool conj = false;
};

enum class Activation : uint8_t { None, Relu, Gelu };

// result = activation(alpha a b + beta added + bias)
struct Product {
  ScalarType dtype, result_dtype;
  int64_t batches, rows, columns, inner;
  Side a, b;
  void* result;  // contiguous
  Scalar alpha = 1, beta = 0;
  // Elements of a row lie behind each other; null: the result itself.
  const void* added = nullptr;
  int64_t added_row_stride = 0, added_batch_stride = 0;
  const void* bias = nullptr;  // of the columns, contiguous
  Activation activation = Activation::None;
  // Of sides of float8 alone: they may differ, and have a factor each, a float
  // of the device. Fast sums have less digits than float32.
  ScalarType b_dtype{};
  const void* a_scale = nullptr;
  const void* b_scale = nullptr;
  bool fast_sums = false;
};

// Whether the library is there; warns once where it is not.
bool has_cublaslt();
bool has_products_of(ScalarType dtype);
// Whether the library reads a side of these strides.
bool is_readable(const Side& side, int64_t rows, int64_t columns);
// On the device's current stream. False: nothing was done.
bool multiply(const char* op, const Product& product, int device);

}  // namespace taeda::cuda
