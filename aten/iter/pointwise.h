// The one driver of every pointwise record. See docs/design/plan.md.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

// The types that kernels compute in; every dtype maps to one of them.
enum class Compute : uint8_t {
  Bool,
  U8,
  I8,
  I16,
  I32,
  I64,
  F32,
  F64,
  C64,
  C128,
};
inline constexpr int kNumCompute = 10;

// ptrs[0] is the output, then the operands, all contiguous and of the compute
// type (the output of its own type, see OutKind); scalars are kScalarSlot
// apart.
using ChunkFn = void (*)(void* const* ptrs, const void* scalars, int64_t n);
inline constexpr int kScalarSlot = 16;
using ChunkTable = ChunkFn[kNumCompute];

enum class Promote : uint8_t {
  Default,     // the operands' result type
  IntToFloat,  // the same, integers to the default dtype
  // As IntToFloat, but integers are computed in double: a result rounded once.
  IntThroughDouble,
  First,  // the dtype of the first operand that is not a condition
};
enum class OutKind : uint8_t {
  Same,  // the compute type
  Bool,
  Real,  // the real part's type of a complex compute type
};

// Which input dtypes an operator takes, as bits.
enum : uint8_t {
  kAcceptBool = 1,
  kAcceptInt = 2,
  kAcceptFloat = 4,
  kAcceptComplex = 8,
  kAcceptAll = 15,
};

struct PointwiseOp {
  const char* name;
  uint8_t operands;
  uint8_t scalars;
  Promote promote;
  OutKind out;
  uint8_t accepts;
  // The operands before this one are conditions: read as bool, and without a
  // say in the result's dtype.
  uint8_t bool_operands;
  const ChunkTable* tables[3];  // per ISA level
};

#ifdef TAEDA_BASELINE_ONLY
#define TAEDA_LEVELS(name) \
  {&isa_default::name, &isa_default::name, &isa_default::name}
#else
#define TAEDA_LEVELS(name) \
  {&isa_default::name, &isa_avx2::name, &isa_avx512::name}
#endif

// A tensor, or a number that takes part in promotion as a number.
struct Operand {
  const TensorBase* tensor = nullptr;
  const Scalar* number = nullptr;
  Operand(const TensorBase& t) : tensor(&t) {}
  Operand(const Scalar& s) : number(&s) {}
};
using Operands = ArrayRef<Operand>;

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

TAEDA_API Compute compute_of(ScalarType t);
TAEDA_API ScalarType type_of(Compute c);
// "\"log\" not implemented for 'Long'" (NotImplementedError).
[[noreturn]] TAEDA_API void not_implemented_for(std::string_view op,
                                                ScalarType t);

}  // namespace taeda
