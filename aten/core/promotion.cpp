#include <taeda/aten/core/promotion.h>

namespace taeda {

namespace {
// A Python float is of the default dtype, a complex of its complex dtype.
ScalarType number_type(ScalarType t) {
  if (is_complex(t)) return default_complex_dtype();
  return is_floating(t) ? default_dtype() : t;
}

ScalarType combine(ScalarType higher, ScalarType lower) {
  if (higher == ScalarType::Undefined) return lower;
  if (is_complex(higher) || lower == ScalarType::Undefined) return higher;
  if (is_floating(higher)) {
    // Within float, the number adds only its kind, never its width.
    return is_complex(lower) ? complex_type_of(higher) : higher;
  }
  bool raises = higher == kBool || is_floating(lower) || is_complex(lower);
  return raises ? promote_types(higher, lower) : higher;
}
}  // namespace

void ResultType::add(ScalarType dtype, int64_t dim, bool is_wrapped_number) {
  if (is_wrapped_number) {
    number_ = promote_types(number_, number_type(dtype));
  } else if (dim > 0) {
    dim_ = promote_types(dim_, dtype);
  } else {
    zero_ = promote_types(zero_, dtype);
  }
}

void ResultType::add(const Scalar& s) {
  number_ = promote_types(number_, number_type(s.type()));
}

ScalarType ResultType::get() const {
  return combine(dim_, combine(zero_, number_));
}

ScalarType result_type(TensorBaseList tensors) {
  ResultType r;
  for (const TensorBase& t : tensors) r.add(t);
  return r.get();
}
ScalarType result_type(const TensorBase& a, const TensorBase& b) {
  ResultType r;
  r.add(a);
  r.add(b);
  return r.get();
}
ScalarType result_type(const TensorBase& a, const Scalar& b) {
  ResultType r;
  r.add(a);
  r.add(b);
  return r.get();
}

}  // namespace taeda
