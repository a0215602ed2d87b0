#include <taeda/aten/iter/exact_out.h>

namespace taeda::derived {

ScalarType dtype_into(std::string_view op,
                      std::optional<ScalarType> wanted,
                      const TensorBase& out) {
  TAEDA_CHECK(!wanted || *wanted == out.dtype(),
              op,
              ": Expected out tensor to have dtype ",
              wanted.value_or(out.dtype()),
              ", but got ",
              out.dtype(),
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

void refuse_other_dtypes(Plan<int64_t>& plan) {
  for (size_t i = 0; i < plan.size(); ++i) plan.refuse_other_dtypes(i);
}

}  // namespace taeda::derived
