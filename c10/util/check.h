// Errors. TAEDA_CHECK is for what a user did wrong, TAEDA_INTERNAL_ASSERT for
// what we did wrong; the kind decides the Python exception type.
#pragma once

#include <taeda/c10/util/array_ref.h>
#include <taeda/c10/util/macros.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace taeda {

enum class ErrorKind : uint8_t {
  Runtime,
  Value,
  Index,
  Type,
  NotImplemented,
  OutOfMemory,
  LinAlg,
  Overflow,
  Assertion,
  Internal,
};

class TAEDA_API Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message);
  ~Error() override;
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

// append_to(out, value) is the customisation point of str_cat: a type that
// wants to appear in messages declares its own overload beside itself.
TAEDA_API void append_to(std::string& out, std::string_view v);
TAEDA_API void append_to(std::string& out, const char* v);
TAEDA_API void append_to(std::string& out, const std::string& v);
TAEDA_API void append_to(std::string& out, char v);
TAEDA_API void append_to(std::string& out, bool v);
TAEDA_API void append_to(std::string& out, long long v);
TAEDA_API void append_to(std::string& out, unsigned long long v);
TAEDA_API void append_to(std::string& out, double v);
TAEDA_API void append_to(std::string& out, ArrayRef<int64_t> v);

template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool> &&
           !std::is_same_v<T, char>)
inline void append_to(std::string& out, T v) {
  if constexpr (std::is_signed_v<T>) {
    append_to(out, static_cast<long long>(v));
  } else {
    append_to(out, static_cast<unsigned long long>(v));
  }
}
inline void append_to(std::string& out, float v) {
  append_to(out, static_cast<double>(v));
}

template <class... Args>
std::string str_cat(const Args&... args) {
  std::string out;
  (append_to(out, args), ...);
  return out;
}

[[noreturn]] TAEDA_API void throw_error(ErrorKind kind, std::string message);
[[noreturn]] TAEDA_API void internal_assert_failed(const char* condition,
                                                   const char* file,
                                                   int line,
                                                   std::string message);
}  // namespace taeda

#define TAEDA_CHECK_AS(kind, condition, ...)               \
  do {                                                     \
    if (TAEDA_UNLIKELY(!(condition))) [[unlikely]]         \
      ::taeda::throw_error(::taeda::ErrorKind::kind,       \
                           ::taeda::str_cat(__VA_ARGS__)); \
  } while (false)
#define TAEDA_CHECK(condition, ...) \
  TAEDA_CHECK_AS(Runtime, condition, __VA_ARGS__)
#define TAEDA_INTERNAL_ASSERT(condition, ...)                             \
  do {                                                                    \
    if (TAEDA_UNLIKELY(!(condition))) [[unlikely]]                        \
      ::taeda::internal_assert_failed(                                    \
          #condition, __FILE__, __LINE__, ::taeda::str_cat(__VA_ARGS__)); \
  } while (false)
