#include <taeda/aten/native/cuda/call_text.h>

namespace taeda::cuda {

const char* device_type(ScalarType t) {
  switch (t) {
    case kByte:
      return "uint8_t";
    case kChar:
      return "signed char";
    case kShort:
      return "short";
    case kInt:
      return "int";
    case kLong:
      return "Long";
    case kUInt16:
      return "uint16_t";
    case kUInt32:
      return "uint32_t";
    case kUInt64:
      return "unsigned long long";
    case kHalf:
      return "Half";
    case kBFloat16:
      return "BFloat16";
    case kFloat:
      return "float";
    case kDouble:
      return "double";
    case kComplexHalf:
      return "complex<Half>";
    case kComplexFloat:
      return "complex<float>";
    case kComplexDouble:
      return "complex<double>";
    case kBool:
      return "bool";
    case kFloat8_e5m2:
      return "Float8_e5m2";
    case kFloat8_e4m3fn:
      return "Float8_e4m3fn";
    case kFloat8_e5m2fnuz:
      return "Float8_e5m2fnuz";
    case kFloat8_e4m3fnuz:
      return "Float8_e4m3fnuz";
    case kFloat8_e8m0fnu:
      return "Float8_e8m0fnu";
    default:
      TAEDA_INTERNAL_ASSERT(false, "no device type for ", t);
  }
}

const char* kind_of(Compute c) {
  ScalarType t = type_of(c);
  if (t == kBool) return "bool";
  if (is_complex(t)) return "complex";
  return is_floating(t) ? "float" : "int";
}

}  // namespace taeda::cuda
