// A value of any schema type, for boxed kernels and the world outside C++.
#pragma once

#include <taeda/aten/core/op_types.h>
#include <taeda/c10/symbolic/sym_int.h>

#include <string>
#include <variant>
#include <vector>

namespace taeda {

// dtype, layout and memory format travel as integers, as in PyTorch's schemas.
// Integers that are symbols, and lists with one, are alternatives of their own;
// what calls a function that takes integers fixes them before (fix_symbols).
class IValue {
 public:
  using Value = std::variant<std::monostate,
                             TensorBase,
                             bool,
                             int64_t,
                             double,
                             complex<double>,
                             std::string,
                             std::vector<int64_t>,
                             std::vector<double>,
                             std::vector<bool>,
                             std::vector<TensorBase>,
                             std::vector<OptionalTensor>,
                             std::vector<Scalar>,
                             Device,
                             Generator,
                             IntrusivePtr<IntrusiveTarget>,
                             SymInt,
                             std::vector<SymInt>>;

  IValue() = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, IValue> &&
             !std::is_same_v<std::decay_t<T>, Scalar>)
  IValue(T&& v) : value_(std::forward<T>(v)) {}
  TAEDA_API IValue(const Scalar& s);

  bool is_none() const {
    return std::holds_alternative<std::monostate>(value_);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  const T& get() const {
    if (const T* p = std::get_if<T>(&value_)) return *p;
    wrong_type();
  }
  template <class T>
  T& get() {
    if (T* p = std::get_if<T>(&value_)) return *p;
    wrong_type();
  }
  // A symbol is fixed to its hint, which is a guard.
  TAEDA_API int64_t to_int() const;
  TAEDA_API double to_double() const;
  TAEDA_API bool to_bool() const;
  TAEDA_API Scalar to_scalar() const;
  const Value& value() const { return value_; }

 private:
  [[noreturn]] TAEDA_API void wrong_type() const;
  Value value_;
};

}  // namespace taeda
