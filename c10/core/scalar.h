// A number of any kind, as an operator's non-tensor argument.
#pragma once

#include <taeda/c10/core/scalar_type.h>

#include <cstdint>
#include <type_traits>

namespace taeda {

class TAEDA_API Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, UInt, Double, Complex };

  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : kind_(Kind::Bool) { v_.i = v; }
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Scalar(T v) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      bool fits = v <= static_cast<T>(INT64_MAX);
      kind_ = fits ? Kind::Int : Kind::UInt;
    } else {
      kind_ = Kind::Int;
    }
    v_.i = static_cast<int64_t>(v);
  }
  template <class T>
    requires std::is_floating_point_v<T>
  Scalar(T v) : kind_(Kind::Double) {
    v_.d[0] = v;
  }
  Scalar(Half v) : Scalar(static_cast<float>(v)) {}
  Scalar(BFloat16 v) : Scalar(static_cast<float>(v)) {}
  template <class T>
  Scalar(complex<T> v) : kind_(Kind::Complex) {
    v_.d[0] = static_cast<double>(v.real());
    v_.d[1] = static_cast<double>(v.imag());
  }

  Kind kind() const { return kind_; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_integral() const { return kind_ == Kind::Int || kind_ == Kind::UInt; }
  bool is_floating() const { return kind_ == Kind::Double; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  // The dtype a tensor made of this number has, before the default dtype.
  ScalarType type() const;

  // Conversions check the range: "value cannot be converted to type ... without
  // overflow" (RuntimeError).
  int64_t to_int() const;
  double to_double() const;
  bool to_bool() const;
  complex<double> to_complex() const;
  // Any element type; wraps nothing, throws as above.
  template <class T>
  T to() const;
  // The element of `t` in memory at `out`, and its inverse.
  void store(ScalarType t, void* out) const;
  static Scalar load(ScalarType t, const void* in);

  bool equal(const Scalar& o) const;
  bool equal(double v) const;
  Scalar operator-() const;
  Scalar conj() const;

 private:
  Kind kind_;
  union {
    int64_t i;
    double d[2];
  } v_;
};

TAEDA_API void append_to(std::string& out, const Scalar& s);

}  // namespace taeda
