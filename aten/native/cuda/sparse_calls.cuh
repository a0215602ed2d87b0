// Parameters of the kernels of sparse_rows.cuh, for the host too: no device
// code.
#pragma once

namespace taeda {

// A matrix in rows (CSR) and what it meets; all lie without gaps.
struct SparseCall {
  long long rows;
  long long columns;    // of the dense side; of samples, what is added up
  const void* offsets;  // rows + 1
  const void* places;   // columns of the entries
  const void* values;   // of samples, the left side
  const void* dense;    // of samples, the right side, column by column
  void* out;
};

}  // namespace taeda
