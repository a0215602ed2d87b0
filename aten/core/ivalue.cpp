#include <taeda/aten/core/ivalue.h>

namespace taeda {

void IValue::wrong_type() const {
  throw_error(ErrorKind::Type,
              str_cat("boxed call: a value of another type was expected, got "
                      "alternative ",
                      value_.index()));
}

IValue::IValue(const Scalar& s) {
  if (s.is_bool()) {
    value_ = s.to_bool();
  } else if (s.is_complex()) {
    value_ = s.to_complex();
  } else if (s.is_floating()) {
    value_ = s.to_double();
  } else {
    value_ = s.to_int();
  }
}

int64_t IValue::to_int() const {
  if (is<bool>()) return get<bool>();
  if (is<SymInt>()) return get<SymInt>().guard();
  return get<int64_t>();
}
double IValue::to_double() const {
  if (is<double>()) return get<double>();
  return static_cast<double>(to_int());
}
bool IValue::to_bool() const {
  return is<int64_t>() ? get<int64_t>() != 0 : get<bool>();
}
Scalar IValue::to_scalar() const {
  if (is<bool>()) return get<bool>();
  if (is<double>()) return get<double>();
  if (is<complex<double>>()) return get<complex<double>>();
  return to_int();
}

}  // namespace taeda
