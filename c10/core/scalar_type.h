// Element types. The numbers are PyTorch's, because serialized programs and
// DLPack-like exchanges carry them.
#pragma once

#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/check.h>
#include <taeda/c10/util/complex.h>
#include <taeda/c10/util/float8.h>
#include <taeda/c10/util/half.h>

#include <cstdint>
#include <string_view>

namespace taeda {

// name, C++ type, number, Python name
#define TAEDA_FORALL_TYPES(_)                                         \
  _(Byte, uint8_t, 0, "uint8")                                        \
  _(Char, int8_t, 1, "int8")                                          \
  _(Short, int16_t, 2, "int16")                                       \
  _(Int, int32_t, 3, "int32")                                         \
  _(Long, int64_t, 4, "int64")                                        \
  _(Half, ::taeda::Half, 5, "float16")                                \
  _(Float, float, 6, "float32")                                       \
  _(Double, double, 7, "float64")                                     \
  _(ComplexHalf, ::taeda::complex<::taeda::Half>, 8, "complex32")     \
  _(ComplexFloat, ::taeda::complex<float>, 9, "complex64")            \
  _(ComplexDouble, ::taeda::complex<double>, 10, "complex128")        \
  _(Bool, bool, 11, "bool")                                           \
  _(BFloat16, ::taeda::BFloat16, 15, "bfloat16")                      \
  _(Float8_e5m2, ::taeda::Float8_e5m2, 23, "float8_e5m2")             \
  _(Float8_e4m3fn, ::taeda::Float8_e4m3fn, 24, "float8_e4m3fn")       \
  _(Float8_e5m2fnuz, ::taeda::Float8_e5m2fnuz, 25, "float8_e5m2fnuz") \
  _(Float8_e4m3fnuz, ::taeda::Float8_e4m3fnuz, 26, "float8_e4m3fnuz") \
  _(UInt16, uint16_t, 27, "uint16")                                   \
  _(UInt32, uint32_t, 28, "uint32")                                   \
  _(UInt64, uint64_t, 29, "uint64")                                   \
  _(Float8_e8m0fnu, ::taeda::Float8_e8m0fnu, 44, "float8_e8m0fnu")

enum class ScalarType : int8_t {
#define _(name, type, number, text) name = number,
  TAEDA_FORALL_TYPES(_)
#undef _
      Undefined = 46,
};
inline constexpr int kNumScalarTypes = 47;

#define _(name, type, number, text) \
  inline constexpr ScalarType k##name = ScalarType::name;
TAEDA_FORALL_TYPES(_)
#undef _

template <class T>
struct ScalarTypeOf;
#define _(name, type, number, text)                       \
  template <>                                             \
  struct ScalarTypeOf<type> {                             \
    static constexpr ScalarType value = ScalarType::name; \
  };
TAEDA_FORALL_TYPES(_)
#undef _
template <class T>
inline constexpr ScalarType scalar_type_of = ScalarTypeOf<T>::value;

namespace detail {
struct TypeFacts {
  uint8_t size = 0;
  bool floating = false;
  bool complex = false;
  bool integral = false;  // bool is not integral here
  std::string_view name = "undefined";
};
struct TypeFactsTable {
  TypeFacts of[kNumScalarTypes];
};
constexpr bool is_float_name(std::string_view s) {
  return s.substr(0, 5) == "float" || s.substr(0, 6) == "bfloat";
}
constexpr bool is_int_name(std::string_view s) {
  return s.substr(0, 3) == "int" || s.substr(0, 4) == "uint";
}
constexpr TypeFactsTable make_type_facts() {
  TypeFactsTable t;
#define _(name, type, number, text)                              \
  t.of[number] = {sizeof(type),                                  \
                  is_float_name(text),                           \
                  std::string_view(text).starts_with("complex"), \
                  is_int_name(text),                             \
                  text};
  TAEDA_FORALL_TYPES(_)
#undef _
  return t;
}
inline constexpr TypeFactsTable kTypeFacts = make_type_facts();
inline constexpr const TypeFacts& facts(ScalarType t) {
  return kTypeFacts.of[static_cast<int>(t)];
}
}  // namespace detail

constexpr size_t element_size(ScalarType t) { return detail::facts(t).size; }
constexpr bool is_floating(ScalarType t) { return detail::facts(t).floating; }
constexpr bool is_complex(ScalarType t) { return detail::facts(t).complex; }
// Integers with or without bool, as PyTorch's isIntegralType.
constexpr bool is_integral(ScalarType t, bool include_bool) {
  return detail::facts(t).integral || (include_bool && t == kBool);
}
constexpr bool is_signed(ScalarType t) {
  return !(t == kByte || t == kUInt16 || t == kUInt32 || t == kUInt64 ||
           t == kBool);
}
constexpr bool is_reduced_floating(ScalarType t) {
  return t == kHalf || t == kBFloat16;
}
constexpr bool is_float8(ScalarType t) {
  return is_floating(t) && element_size(t) == 1;
}
// "float32", as in `taeda.float32`.
constexpr std::string_view dtype_name(ScalarType t) {
  return detail::facts(t).name;
}
// "Float", as PyTorch's messages call it.
TAEDA_API std::string_view type_name(ScalarType t);
inline void append_to(std::string& out, ScalarType t) {
  out.append(type_name(t));
}

// complex64 -> float32 and back; other types are themselves / Undefined.
TAEDA_API ScalarType real_type_of(ScalarType t);
TAEDA_API ScalarType complex_type_of(ScalarType t);
// The type that arithmetic on `t` computes in: halves in float.
TAEDA_API ScalarType compute_type(ScalarType t);
// PyTorch's promotion lattice over two dtypes.
TAEDA_API ScalarType promote_types(ScalarType a, ScalarType b);
// Whether `from` may be written into `to` (float into int may not).
TAEDA_API bool can_cast(ScalarType from, ScalarType to);

// Calls f(T{}) with the C++ type of `t`.
template <class F>
decltype(auto) visit_type(ScalarType t, F&& f) {
  switch (t) {
#define _(name, type, number, text) \
  case ScalarType::name:            \
    return f(type{});
    TAEDA_FORALL_TYPES(_)
#undef _
    case ScalarType::Undefined:
      break;
  }
  throw_error(ErrorKind::Internal, "visit_type: undefined dtype");
}

}  // namespace taeda
