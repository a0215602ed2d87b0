#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/core/promotion.h>

namespace taeda {

namespace {

ScalarType common_type(const DtypeRule& rule, Operands operands) {
  const TensorBase* first = operands[rule.conditions].tensor;
  if (rule.promote == Promote::First) return first->dtype();
  bool simple = first != nullptr && !first->impl()->is_wrapped_number;
  for (size_t i = rule.conditions; i < operands.size() && simple; ++i) {
    const TensorBase* t = operands[i].tensor;
    simple = t != nullptr && t->dtype() == first->dtype();
  }
  if (simple) return first->dtype();
  ResultType result;
  for (size_t i = rule.conditions; i < operands.size(); ++i) {
    if (operands[i].tensor != nullptr) {
      result.add(*operands[i].tensor);
    } else {
      result.add(*operands[i].number);
    }
  }
  return result.get();
}

// The compute type of a dtype, or the widest integer where an operator has no
// kernel for a narrow one.
Compute choose_compute(const char* op,
                       const DtypeRule& rule,
                       ScalarType common,
                       Compute compute) {
  bool whole = is_integral(common, /*include_bool=*/true);
  if (!rule.computes_in(compute) && whole) compute = Compute::I64;
  if (!rule.takes(common) || !rule.computes_in(compute))
    not_implemented_for(op, common);
  return compute;
}

}  // namespace

DtypePlan plan_dtypes(const char* op,
                      const DtypeRule& rule,
                      Operands operands) {
  DtypePlan plan;
  plan.common = common_type(rule, operands);
  bool to_float = rule.promote == Promote::IntToFloat ||
                  rule.promote == Promote::IntThroughDouble;
  bool whole = to_float && is_integral(plan.common, true);
  if (whole) plan.common = default_dtype();
  bool wide = whole && rule.promote == Promote::IntThroughDouble;
  plan.compute = choose_compute(
      op, rule, plan.common, wide ? Compute::F64 : compute_of(plan.common));
  plan.out = result_of(rule.out, plan.common);
  return plan;
}

DtypePlan plan_reduction(const char* op,
                         const DtypeRule& rule,
                         ScalarType self,
                         std::optional<ScalarType> dtype) {
  DtypePlan plan;
  plan.common = dtype ? *dtype : self;
  bool integral = is_integral(plan.common, /*include_bool=*/true);
  if (rule.promote == Promote::IntToLong && !dtype && integral) {
    plan.common = kLong;
  }
  if (rule.promote == Promote::IntToFloat && integral) {
    plan.common = default_dtype();
  }
  if (rule.promote == Promote::FloatOnly) {
    TAEDA_CHECK(!integral,
                op,
                "(): could not infer output dtype. ",
                dtype ? "Optional" : "Input",
                " dtype must be either a floating point or complex dtype. "
                "Got: ",
                plan.common);
  }
  plan.compute = choose_compute(op, rule, plan.common, compute_of(plan.common));
  plan.out = result_of(rule.out, plan.common);
  // any and all of bytes are bytes.
  if (rule.out == OutKind::Bool && self == kByte) plan.out = kByte;
  return plan;
}

Compute compute_of(ScalarType t) {
  switch (t) {
    case kBool:
      return Compute::Bool;
    case kByte:
      return Compute::U8;
    case kChar:
      return Compute::I8;
    case kShort:
      return Compute::I16;
    case kInt:
      return Compute::I32;
    case kLong:
    case kUInt16:
    case kUInt32:
    case kUInt64:
      return Compute::I64;
    case kDouble:
      return Compute::F64;
    case kComplexHalf:
    case kComplexFloat:
      return Compute::C64;
    case kComplexDouble:
      return Compute::C128;
    default:
      return Compute::F32;
  }
}

ScalarType type_of(Compute c) {
  constexpr ScalarType types[] = {kBool,
                                  kByte,
                                  kChar,
                                  kShort,
                                  kInt,
                                  kLong,
                                  kFloat,
                                  kDouble,
                                  kComplexFloat,
                                  kComplexDouble};
  static_assert(std::size(types) == kNumCompute);
  return types[static_cast<int>(c)];
}

ScalarType result_of(OutKind out, ScalarType computed) {
  if (out == OutKind::Same) return computed;
  return out == OutKind::Bool ? kBool : real_type_of(computed);
}

void not_implemented_for(std::string_view op, ScalarType t) {
  throw_error(ErrorKind::NotImplemented,
              str_cat("\"", op, "\" not implemented for '", t, "'"));
}

}  // namespace taeda
