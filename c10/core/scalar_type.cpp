#include <taeda/c10/core/scalar_type.h>

namespace taeda {

std::string_view type_name(ScalarType t) {
  switch (t) {
#define _(name, type, number, text) \
  case ScalarType::name:            \
    return #name;
    TAEDA_FORALL_TYPES(_)
#undef _
    case ScalarType::Undefined:
      break;
  }
  return "Undefined";
}

ScalarType real_type_of(ScalarType t) {
  switch (t) {
    case kComplexHalf:
      return kHalf;
    case kComplexFloat:
      return kFloat;
    case kComplexDouble:
      return kDouble;
    default:
      return t;
  }
}

ScalarType complex_type_of(ScalarType t) {
  if (is_complex(t)) return t;
  switch (t) {
    case kHalf:
      return kComplexHalf;
    case kBFloat16:  // no 16-bit brain complex exists
    case kFloat:
      return kComplexFloat;
    case kDouble:
      return kComplexDouble;
    default:
      throw_error(ErrorKind::Runtime,
                  str_cat("no complex type corresponds to ", t));
  }
}

ScalarType compute_type(ScalarType t) {
  if (t == kComplexHalf) return kComplexFloat;
  if (is_floating(t) && element_size(t) < 4) return kFloat;
  return t;
}

namespace {
ScalarType promote_integers(ScalarType a, ScalarType b) {
  if (a == kBool) return b;
  if (b == kBool) return a;
  size_t sa = element_size(a), sb = element_size(b);
  if (is_signed(a) == is_signed(b)) return sa >= sb ? a : b;
  ScalarType with_sign = is_signed(a) ? a : b;
  ScalarType without = is_signed(a) ? b : a;
  // PyTorch defines uint8 with signed types only; the wider unsigned types
  // have no common type with signed ones.
  TAEDA_CHECK(without == kByte,
              "Promotion for uint16, uint32, uint64 types is not supported, "
              "attempted to promote ",
              type_name(a),
              " and ",
              type_name(b));
  return element_size(with_sign) > 1 ? with_sign : kShort;
}

ScalarType promote_floats(ScalarType a, ScalarType b) {
  TAEDA_CHECK(!is_float8(a) && !is_float8(b),
              "Promotion for Float8 Types is not supported, attempted to "
              "promote ",
              type_name(a),
              " and ",
              type_name(b));
  if (element_size(a) != element_size(b)) {
    return element_size(a) > element_size(b) ? a : b;
  }
  return kFloat;  // float16 with bfloat16
}
}  // namespace

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b || b == ScalarType::Undefined) return a;
  if (a == ScalarType::Undefined) return b;
  if (is_complex(a) || is_complex(b)) {
    auto part = [](ScalarType t) { return real_type_of(t); };
    ScalarType ra = part(a), rb = part(b);
    ScalarType r = promote_types(ra, rb);
    // bfloat16 beside complex32 needs a float32 part.
    return complex_type_of(is_floating(r) ? r : kFloat);
  }
  bool fa = is_floating(a), fb = is_floating(b);
  if (fa && fb) return promote_floats(a, b);
  if (fa) return a;
  if (fb) return b;
  return promote_integers(a, b);
}

bool can_cast(ScalarType from, ScalarType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, /*include_bool=*/true)) {
    return false;
  }
  return from == kBool || to != kBool;
}

}  // namespace taeda
