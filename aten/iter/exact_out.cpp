#include <taeda/aten/iter/exact_out.h>
#include <taeda/aten/iter/type_words.h>

namespace taeda::derived {

std::string_view type_words(ScalarType t) {
  switch (t) {
    case kBool:
      return "bool";
    case kByte:
      return "unsigned char";
    case kChar:
      return "signed char";
    case kShort:
      return "short int";
    case kInt:
      return "int";
    case kLong:
      return "long int";
    case kFloat:
      return "float";
    case kDouble:
      return "double";
    case kHalf:
      return "c10::Half";
    case kBFloat16:
      return "c10::BFloat16";
    case kComplexFloat:
      return "c10::complex<float>";
    case kComplexDouble:
      return "c10::complex<double>";
    default:
      return dtype_name(t);
  }
}

ScalarType dtype_into(std::string_view op,
                      std::optional<ScalarType> wanted,
                      const TensorBase& out) {
  TAEDA_CHECK(!wanted || *wanted == out.dtype(),
              op,
              ": Expected out tensor to have dtype ",
              type_words(wanted.value_or(out.dtype())),
              ", but got ",
              type_words(out.dtype()),
              " instead");
  return out.dtype();
}

void write_exact(std::string_view op,
                 const TensorBase& computed,
                 const TensorBase& out) {
  dtype_into(op, computed.dtype(), out);
  write_out(op, computed, out);
}

void write_within_kind(std::string_view op,
                       const TensorBase& computed,
                       const TensorBase& out) {
  bool complex = computed.is_complex();
  TAEDA_CHECK(complex ? out.is_complex() : is_floating(out.dtype()),
              op,
              " expects a ",
              complex ? "complex" : "floating point",
              " output tensor, but got ",
              out.dtype());
  write_out(op, computed, out);
}

void write_safely(std::string_view op,
                  const TensorBase& computed,
                  const TensorBase& out) {
  TAEDA_CHECK(can_cast(computed.dtype(), out.dtype()),
              op,
              ": Expected result to be safely castable from ",
              computed.dtype(),
              " dtype, but got result with dtype ",
              out.dtype());
  write_out(op, computed, out);
}

void refuse_other_dtypes(Plan<int64_t>& plan) {
  for (size_t i = 0; i < plan.size(); ++i) plan.refuse_other_dtypes(i);
}

}  // namespace taeda::derived
