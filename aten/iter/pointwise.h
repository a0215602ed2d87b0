// The one driver of every pointwise record. See docs/design/plan.md.
#pragma once

#include <taeda/aten/core/dtype_rule.h>

namespace taeda {

// ptrs[0] is the output, then the operands, all contiguous and of the compute
// type (the output of its own type, see OutKind); scalars are kScalarSlot
// apart.
using ChunkFn = void (*)(void* const* ptrs, const void* scalars, int64_t n);
inline constexpr int kScalarSlot = 16;
// Where a record is little arithmetic on two tensors, `single[i]` are the loops
// for a first (0) or second (1) operand that is one value, in float and double.
struct ChunkTable {
  ChunkFn each[kNumCompute];
  ChunkFn single[2][2];
};

struct PointwiseOp {
  const char* name;
  uint8_t operands;
  uint8_t scalars;
  DtypeRule types;
  const ChunkTable* tables[3];  // per ISA level
  const char* kernel;           // the name of its text, see docs/design/cuda.md
};

#ifdef TAEDA_BASELINE_ONLY
#define TAEDA_LEVELS(name) \
  {&isa_default::name, &isa_default::name, &isa_default::name}, #name
#else
#define TAEDA_LEVELS(name) \
  {&isa_default::name, &isa_avx2::name, &isa_avx512::name}, #name
#endif

TAEDA_API TensorBase pointwise(const PointwiseOp& op,
                               std::initializer_list<Operand> operands,
                               std::initializer_list<Scalar> scalars = {});
// A gradient that is going to be summed to `sizes`: where that is a sum at all,
// the result has the compute type, so that 16-bit gradients are rounded once.
TAEDA_API TensorBase pointwise_summand(const PointwiseOp& op,
                                       std::initializer_list<Operand> operands,
                                       std::initializer_list<Scalar> scalars,
                                       IntArrayRef sizes);
// Writes into `self`, which is one of the operands.
TAEDA_API void pointwise_inplace(const PointwiseOp& op,
                                 std::initializer_list<Operand> operands,
                                 std::initializer_list<Scalar> scalars,
                                 const TensorBase& self);
TAEDA_API void pointwise_out(const PointwiseOp& op,
                             std::initializer_list<Operand> operands,
                             std::initializer_list<Scalar> scalars,
                             const TensorBase& out);

}  // namespace taeda
