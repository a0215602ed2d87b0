#include <taeda/c10/core/scalar.h>

#include <cmath>
#include <limits>

namespace taeda {

namespace {
[[noreturn]] void overflow(std::string_view type) {
  throw_error(
      ErrorKind::Runtime,
      str_cat("value cannot be converted to type ", type, " without overflow"));
}

template <class T>
constexpr std::string_view cpp_name() {
  return type_name(scalar_type_of<T>);
}

// Negative values wrap into unsigned types when their magnitude fits, as
// PyTorch's do; everything else outside the range is an overflow.
template <class T>
T checked_int(int64_t v) {
  if constexpr (std::is_same_v<T, int64_t>) return v;
  if constexpr (std::is_same_v<T, uint64_t>) return static_cast<T>(v);
  int64_t low = std::is_signed_v<T>
                    ? static_cast<int64_t>(std::numeric_limits<T>::min())
                    : -static_cast<int64_t>(std::numeric_limits<T>::max());
  if (v < low || v > static_cast<int64_t>(std::numeric_limits<T>::max())) {
    overflow(cpp_name<T>());
  }
  return static_cast<T>(v);
}

int64_t double_to_int(double v) {
  if (!(v >= -9223372036854775808.0 && v < 9223372036854775808.0)) {
    overflow("int64_t");
  }
  return static_cast<int64_t>(v);
}

template <class T>
T checked_float(double v, double max) {
  if (std::isfinite(v) && std::fabs(v) > max) overflow(cpp_name<T>());
  return static_cast<T>(static_cast<float>(v));
}
}  // namespace

ScalarType Scalar::type() const {
  switch (kind_) {
    case Kind::Bool:
      return kBool;
    case Kind::Int:
      return kLong;
    case Kind::UInt:
      return kUInt64;
    case Kind::Double:
      return kDouble;
    case Kind::Complex:
      return kComplexDouble;
  }
  return kDouble;
}

int64_t Scalar::to_int() const {
  switch (kind_) {
    case Kind::Double:
      return double_to_int(v_.d[0]);
    case Kind::Complex:
      if (v_.d[1] != 0) overflow("int64_t");
      return double_to_int(v_.d[0]);
    case Kind::UInt:
      overflow("int64_t");
    default:
      return v_.i;
  }
}

double Scalar::to_double() const {
  switch (kind_) {
    case Kind::Double:
      return v_.d[0];
    case Kind::Complex:
      if (v_.d[1] != 0) overflow("double");
      return v_.d[0];
    case Kind::UInt:
      return static_cast<double>(static_cast<uint64_t>(v_.i));
    default:
      return static_cast<double>(v_.i);
  }
}

bool Scalar::to_bool() const {
  if (kind_ == Kind::Double) return v_.d[0] != 0;
  if (kind_ == Kind::Complex) return v_.d[0] != 0 || v_.d[1] != 0;
  return v_.i != 0;
}

complex<double> Scalar::to_complex() const {
  if (kind_ == Kind::Complex) return {v_.d[0], v_.d[1]};
  return {to_double(), 0.0};
}

template <class T>
T Scalar::to() const {
  if constexpr (std::is_same_v<T, bool>) {
    return to_bool();
  } else if constexpr (std::is_integral_v<T>) {
    if (kind_ == Kind::UInt) {
      if (!std::is_same_v<T, uint64_t>) overflow(cpp_name<T>());
      return static_cast<T>(v_.i);
    }
    return checked_int<T>(to_int());
  } else if constexpr (std::is_same_v<T, double>) {
    return to_double();
  } else if constexpr (std::is_same_v<T, float>) {
    return checked_float<T>(to_double(), std::numeric_limits<float>::max());
  } else if constexpr (std::is_same_v<T, Half>) {
    return checked_float<T>(to_double(), 65504.0);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return checked_float<T>(to_double(), 3.3895313892515355e38);
  } else if constexpr (std::is_same_v<T, complex<double>>) {
    return to_complex();
  } else if constexpr (std::is_same_v<T, complex<float>>) {
    complex<double> c = to_complex();
    return {static_cast<float>(c.real()), static_cast<float>(c.imag())};
  } else if constexpr (std::is_same_v<T, complex<Half>>) {
    complex<double> c = to_complex();
    return {Half(static_cast<float>(c.real())),
            Half(static_cast<float>(c.imag()))};
  } else {
    return T(static_cast<float>(to_double()));
  }
}
#define _(name, type, number, text) template TAEDA_API type Scalar::to() const;
TAEDA_FORALL_TYPES(_)
#undef _

void Scalar::store(ScalarType t, void* out) const {
  visit_type(t, [&](auto tag) {
    using T = decltype(tag);
    *static_cast<T*>(out) = to<T>();
  });
}

Scalar Scalar::load(ScalarType t, const void* in) {
  return visit_type(t, [&](auto tag) -> Scalar {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, bool>) {
      return *static_cast<const uint8_t*>(in) != 0;  // any byte may stand there
    }
    T v = *static_cast<const T*>(in);
    if constexpr (requires { v.imag(); }) {
      return complex<double>(static_cast<double>(v.real()),
                             static_cast<double>(v.imag()));
    } else if constexpr (std::is_arithmetic_v<T>) {
      return v;
    } else {
      return static_cast<double>(static_cast<float>(v));
    }
  });
}

bool Scalar::equal(const Scalar& o) const {
  if (is_complex() || o.is_complex()) return to_complex() == o.to_complex();
  if (is_floating() || o.is_floating()) return to_double() == o.to_double();
  return v_.i == o.v_.i && (kind_ == Kind::UInt) == (o.kind_ == Kind::UInt);
}

bool Scalar::equal(double v) const {
  return is_complex() ? v_.d[0] == v && v_.d[1] == 0 : to_double() == v;
}

Scalar Scalar::operator-() const {
  if (is_complex()) return complex<double>(-v_.d[0], -v_.d[1]);
  if (is_floating()) return -v_.d[0];
  // The least integer is its own negative, as in tensors.
  return static_cast<int64_t>(-static_cast<uint64_t>(to_int()));
}

Scalar Scalar::conj() const {
  return is_complex() ? Scalar(complex<double>(v_.d[0], -v_.d[1])) : *this;
}

void append_to(std::string& out, const Scalar& s) {
  if (s.is_bool()) {
    out.append(s.to_bool() ? "True" : "False");
  } else if (s.is_complex()) {
    complex<double> c = s.to_complex();
    out.append(str_cat("(", c.real(), c.imag() < 0 ? "" : "+", c.imag(), "j)"));
  } else if (s.is_floating()) {
    append_to(out, s.to_double());
  } else {
    append_to(out, s.to<int64_t>());
  }
}

}  // namespace taeda
