// Which dtypes an operator takes, computes in and gives: one rule per record,
// applied by the drivers of all backends and by the compiler.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/gen/compute.h>

namespace taeda {

// How the common dtype of the operands becomes that of the result.
enum class Promote : uint8_t {
  Default,     // the operands' result type
  IntToFloat,  // the same, integers to the default dtype
  // As IntToFloat, but integers are computed in double: a result rounded once.
  IntThroughDouble,
  First,      // the dtype of the first operand that is not a condition
  IntToLong,  // reductions: integers and bool are added up in int64
  FloatOnly,  // reductions: integers are refused unless a dtype is given
};
enum class OutKind : uint8_t {
  Same,  // the compute type
  Bool,
  Real,  // the real part's type of a complex compute type
};

using DtypeSet = uint64_t;  // bits by ScalarType
constexpr DtypeSet dtype_bit(ScalarType t) {
  return DtypeSet{1} << static_cast<int>(t);
}
template <class... T>
constexpr DtypeSet dtype_set(T... types) {
  return (dtype_bit(types) | ... | 0);
}
inline constexpr DtypeSet kBoolTypes = dtype_set(kBool);
inline constexpr DtypeSet kIntTypes =
    dtype_set(kByte, kChar, kShort, kInt, kLong, kUInt16, kUInt32, kUInt64);
inline constexpr DtypeSet kFloatTypes =
    dtype_set(kHalf, kBFloat16, kFloat, kDouble);
inline constexpr DtypeSet kComplexTypes =
    dtype_set(kComplexHalf, kComplexFloat, kComplexDouble);

// Integers and 8-bit floats that few operators take: each is computed in a type
// that holds its values (those of uint64 keep their bits).
constexpr bool is_rare(ScalarType t) {
  return t == kUInt16 || t == kUInt32 || t == kUInt64 || is_float8(t);
}

struct DtypeRule {
  DtypeSet accepts = ~DtypeSet{0};
  uint16_t computes = 0;  // bits by Compute, and kRare
  Promote promote = Promote::Default;
  OutKind out = OutKind::Same;
  // The operands before this one are conditions: read as bool, and without a
  // say in the result's dtype.
  uint8_t conditions = 0;
  // Bits of the operands that are not rounded to a common dtype of 16-bit
  // floats where they are numbers or 0-dim tensors.
  uint8_t exact = 0;

  bool is_exact(size_t operand) const { return (exact >> operand & 1) != 0; }

  static constexpr uint16_t kRare = 1 << 15;  // is_rare dtypes are taken
  static_assert(kNumCompute < 15);

  bool takes(ScalarType t) const {
    return is_rare(t) ? (computes & kRare) != 0 : (accepts & dtype_bit(t)) != 0;
  }
  bool computes_in(Compute c) const {
    return (computes >> static_cast<int>(c) & 1) != 0;
  }
};

// A tensor, or a number that takes part in promotion as a number.
struct Operand {
  const TensorBase* tensor = nullptr;
  const Scalar* number = nullptr;
  Operand(const TensorBase& t) : tensor(&t) {}
  Operand(const Scalar& s) : number(&s) {}
};
using Operands = ArrayRef<Operand>;

// Decided before any memory is touched.
struct DtypePlan {
  ScalarType common;  // operands are converted to this one first
  Compute compute;
  ScalarType out;
};

// NotImplementedError `"log" not implemented for 'Long'` for what the rule does
// not accept.
TAEDA_API DtypePlan plan_dtypes(const char* op,
                                const DtypeRule& rule,
                                Operands operands);
// Of a reduction: `dtype` is what the caller asks for.
TAEDA_API DtypePlan plan_reduction(const char* op,
                                   const DtypeRule& rule,
                                   ScalarType self,
                                   std::optional<ScalarType> dtype);

TAEDA_API Compute compute_of(ScalarType t);
TAEDA_API ScalarType type_of(Compute c);
// The dtype that a kernel's result has in a compute type.
TAEDA_API ScalarType result_of(OutKind out, ScalarType computed);
[[noreturn]] TAEDA_API void not_implemented_for(std::string_view op,
                                                ScalarType t);

}  // namespace taeda
