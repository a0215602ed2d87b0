// The one driver of every reduction record.
#pragma once

#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/cpu/kernels/reduce_table.h>

namespace taeda {

enum class ReduceType : uint8_t {
  Same,        // the input's dtype
  IntToLong,   // integers and bool are added up in int64
  IntToFloat,  // integers to the default dtype
  FloatOnly,   // integers are refused unless a dtype is given
  Bool,        // any, all: bool (uint8 stays uint8)
};

struct ReduceOp {
  const char* name;
  ReduceType type;
  OutKind out;
  uint8_t accepts;
  bool has_identity;  // whether nothing at all can be reduced
  const ReduceTable* tables[3];
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

// Which dims are reduced, as bits; checks range and repetition.
TAEDA_API uint64_t dim_mask(std::optional<IntArrayRef> dims, int64_t rank);
TAEDA_API DimVector reduced_shape(IntArrayRef sizes,
                                  uint64_t mask,
                                  bool keepdim);

}  // namespace taeda
