// Launches of the kernels of rows.cuh.
#pragma once

#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/aten/native/cuda/row_calls.cuh>

namespace taeda::cuda {

// What elements are added up in: double for double, else float.
inline ScalarType accumulated_in(ScalarType t) {
  return t == kDouble ? kDouble : kFloat;
}

// The operator, the header, and the policy with its properties.
struct RowKernel {
  const char* op;
  const char* header;
  const char* policy;
  int inputs;
  int state;                   // numbers of a state
  bool folds = true;           // whether a share must know the others
  bool writes = true;          // a result of the rows' shape
  bool leaves_states = false;  // of the shares, which are the result
};

// Fills in what the launch decides; `call` has rows, count and memory. `stored`
// is the type of all rows, `factors` that of factors. What is returned are the
// states, [rows, shares, state], of a kernel that leaves them.
TensorBase run_rows(const RowKernel& kernel,
                    ScalarType stored,
                    ScalarType factors,
                    Device device,
                    RowCall call);

// As it is, or a copy whose rows lie behind each other.
Tensor in_rows(const Tensor& t);
Tensor in_dtype(const Tensor& t, ScalarType dtype);

}  // namespace taeda::cuda
