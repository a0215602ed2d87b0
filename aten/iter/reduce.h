// The one driver of every reduction record.
#pragma once

#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/cpu/kernels/reduce_table.h>

namespace taeda {

struct ReduceOp {
  const char* name;
  DtypeRule types;
  bool has_identity;  // whether nothing at all can be reduced
  const ReduceTable* tables[3];
  const char* kernel;  // the name of its text, see docs/design/cuda.md
};

struct ReduceArgs {
  // nullopt and the empty list mean all dims.
  std::optional<IntArrayRef> dims = std::nullopt;
  bool keepdim = false;
  std::optional<ScalarType> dtype = std::nullopt;
};

TAEDA_API TensorBase reduce(const ReduceOp& op,
                            const TensorBase& self,
                            const ReduceArgs& args,
                            std::initializer_list<Scalar> scalars = {});

// The out= form of reductions to truth values, which also fit into bytes.
TAEDA_API void write_truth(std::string_view op,
                           const TensorBase& computed,
                           const TensorBase& out);

// Which dims are reduced, as bits; checks range and repetition.
TAEDA_API uint64_t dim_mask(std::optional<IntArrayRef> dims, int64_t rank);
TAEDA_API DimVector reduced_shape(IntArrayRef sizes,
                                  uint64_t mask,
                                  bool keepdim);

}  // namespace taeda
