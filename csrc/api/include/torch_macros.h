// Checks and choices by dtype in the notation of PyTorch's C++ programs.
#pragma once

#include <taeda/c10/core/scalar_type.h>
#include <taeda/c10/util/check.h>

// The first error text is for a check without a message of its own.
#define TAEDA_TORCH_CHECK(kind, condition, ...)                               \
  do {                                                                        \
    if (TAEDA_UNLIKELY(!(condition))) [[unlikely]] {                          \
      ::std::string taeda_text = ::taeda::str_cat(__VA_ARGS__);               \
      ::taeda::throw_error(::taeda::ErrorKind::kind,                          \
                           taeda_text.empty() ? "Expected " #condition        \
                                                " to be true, but got false." \
                                              : taeda_text);                  \
    }                                                                         \
  } while (false)
#define TORCH_CHECK(condition, ...) \
  TAEDA_TORCH_CHECK(Runtime, condition, __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) \
  TAEDA_TORCH_CHECK(Value, condition, __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) \
  TAEDA_TORCH_CHECK(Type, condition, __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) \
  TAEDA_TORCH_CHECK(Index, condition, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  TAEDA_TORCH_CHECK(NotImplemented, condition, __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) \
  TAEDA_INTERNAL_ASSERT(condition, __VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition, __VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false, __VA_ARGS__)

// AT_DISPATCH_SWITCH(dtype, "name", AT_DISPATCH_CASE(at::kFloat, [&] {...}))
// runs the case of the dtype with scalar_t as its C++ type.
#define AT_DISPATCH_CASE(dtype, ...)                 \
  case dtype: {                                      \
    using scalar_t = ::taeda::front::CppType<dtype>; \
    return __VA_ARGS__();                            \
  }
#define AT_DISPATCH_SWITCH(dtype, name, ...)                               \
  [&] {                                                                    \
    ::taeda::ScalarType taeda_dtype = dtype;                               \
    switch (taeda_dtype) {                                                 \
      __VA_ARGS__                                                          \
      default:                                                             \
        ::taeda::throw_error(                                              \
            ::taeda::ErrorKind::NotImplemented,                            \
            ::taeda::str_cat(                                              \
                '"', name, "\" not implemented for '", taeda_dtype, "'")); \
    }                                                                      \
  }()
#define AT_DISPATCH_CASE_FLOATING_TYPES(...)      \
  AT_DISPATCH_CASE(::taeda::kDouble, __VA_ARGS__) \
  AT_DISPATCH_CASE(::taeda::kFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)     \
  AT_DISPATCH_CASE(::taeda::kByte, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::taeda::kChar, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::taeda::kShort, __VA_ARGS__) \
  AT_DISPATCH_CASE(::taeda::kInt, __VA_ARGS__)   \
  AT_DISPATCH_CASE(::taeda::kLong, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(dtype, name, ...) \
  AT_DISPATCH_SWITCH(dtype, name, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(dtype, name, ...)     \
  AT_DISPATCH_SWITCH(dtype,                                       \
                     name,                                        \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
                         AT_DISPATCH_CASE(::taeda::kHalf, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(type, dtype, name, ...)    \
  AT_DISPATCH_SWITCH(dtype,                                       \
                     name,                                        \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
                         AT_DISPATCH_CASE(type, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(dtype, name, ...) \
  AT_DISPATCH_SWITCH(dtype, name, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(dtype, name, ...) \
  AT_DISPATCH_SWITCH(dtype, name, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))

namespace taeda::front {
template <ScalarType t>
struct CppTypeOf;
#define _(name, type, number, text)    \
  template <>                          \
  struct CppTypeOf<ScalarType::name> { \
    using Type = type;                 \
  };
TAEDA_FORALL_TYPES(_)
#undef _
template <ScalarType t>
using CppType = typename CppTypeOf<t>::Type;
}  // namespace taeda::front
