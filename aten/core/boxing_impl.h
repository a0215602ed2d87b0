#pragma once

#include <taeda/aten/core/boxing.h>
#include <taeda/aten/core/ivalue.h>

#include <optional>
#include <tuple>
#include <utility>

namespace taeda {
namespace boxing {

// To a stack value ------------------------------------------------------------

inline IValue pack(const TensorBase& t) { return t; }
inline IValue pack(const OptionalTensor& t) {
  return t && t->defined() ? IValue(*t) : IValue();
}
inline IValue pack(TensorBaseList l) { return l.vec(); }
inline IValue pack(ArrayRef<OptionalTensor> l) { return l.vec(); }
inline IValue pack(const Scalar& s) { return IValue(s); }
inline IValue pack(int64_t v) { return v; }
inline IValue pack(double v) { return v; }
inline IValue pack(bool v) { return v; }
inline IValue pack(std::string_view v) { return std::string(v); }
inline IValue pack(ScalarType v) { return static_cast<int64_t>(v); }
inline IValue pack(Layout v) { return static_cast<int64_t>(v); }
inline IValue pack(MemoryFormat v) { return static_cast<int64_t>(v); }
inline IValue pack(Device v) { return v; }
inline IValue pack(const Generator& v) { return v; }
inline IValue pack(ArrayRef<int64_t> l) { return l.vec(); }
inline IValue pack(ArrayRef<double> l) { return l.vec(); }
inline IValue pack(ArrayRef<Scalar> l) { return l.vec(); }
inline IValue pack(ArrayRef<bool> l) {
  return std::vector<bool>(l.begin(), l.end());
}
template <class T>
IValue pack(const std::optional<T>& v) {
  return v ? pack(*v) : IValue();
}

// From a stack value: an object that lives during the call
// ---------------------

template <class T>
struct Read;  // Read<T>::get(const IValue&) -> T

#define TAEDA_READ(type, expression)                        \
  template <>                                               \
  struct Read<type> {                                       \
    static type get(const IValue& v) { return expression; } \
  };
TAEDA_READ(int64_t, v.to_int())
TAEDA_READ(double, v.to_double())
TAEDA_READ(bool, v.to_bool())
TAEDA_READ(Scalar, v.to_scalar())
TAEDA_READ(std::string_view, v.get<std::string>())
TAEDA_READ(ScalarType, static_cast<ScalarType>(v.to_int()))
TAEDA_READ(Layout, static_cast<Layout>(v.to_int()))
TAEDA_READ(MemoryFormat, static_cast<MemoryFormat>(v.to_int()))
TAEDA_READ(Device, v.get<Device>())
TAEDA_READ(Generator, v.get<Generator>())
TAEDA_READ(TensorBase, v.is_none() ? TensorBase() : v.get<TensorBase>())
TAEDA_READ(ArrayRef<int64_t>, v.get<std::vector<int64_t>>())
TAEDA_READ(ArrayRef<double>, v.get<std::vector<double>>())
TAEDA_READ(ArrayRef<Scalar>, v.get<std::vector<Scalar>>())
TAEDA_READ(TensorBaseList, v.get<std::vector<TensorBase>>())
#undef TAEDA_READ

template <class T>
struct Read<std::optional<T>> {
  static std::optional<T> get(const IValue& v) {
    if (v.is_none()) return std::nullopt;
    return Read<T>::get(v);
  }
};

template <class A>
struct Holder {
  std::decay_t<A> value;
  explicit Holder(const IValue& v) : value(Read<std::decay_t<A>>::get(v)) {}
  A get() { return value; }
};
template <>
struct Holder<ArrayRef<bool>> {
  SmallVector<bool, 4> value;
  explicit Holder(const IValue& v) {
    for (bool b : v.get<std::vector<bool>>()) value.push_back(b);
  }
  ArrayRef<bool> get() { return value; }
};
template <>
struct Holder<ArrayRef<OptionalTensor>> {
  std::vector<OptionalTensor> value;
  explicit Holder(const IValue& v) {
    if (v.is<std::vector<OptionalTensor>>()) {
      value = v.get<std::vector<OptionalTensor>>();
      return;
    }
    for (const TensorBase& t : v.get<std::vector<TensorBase>>()) {
      value.emplace_back(t);
    }
  }
  ArrayRef<OptionalTensor> get() { return value; }
};

// Results
// ----------------------------------------------------------------------

inline void push(Stack& s, const TensorBase& t) { s.emplace_back(t); }
inline void push(Stack& s, const std::vector<TensorBase>& l) {
  s.emplace_back(l);
}
inline void push(Stack& s, const Scalar& v) { s.emplace_back(v); }
inline void push(Stack& s, bool v) { s.emplace_back(v); }
inline void push(Stack& s, int64_t v) { s.emplace_back(v); }
inline void push(Stack& s, double v) { s.emplace_back(v); }
inline void push(Stack& s, ScalarType v) {
  s.emplace_back(static_cast<int64_t>(v));
}
inline void push(Stack& s, const DimVector& v) {
  s.emplace_back(std::vector<int64_t>(v.begin(), v.end()));
}
template <class... T>
void push(Stack& s, const std::tuple<T...>& t) {
  std::apply([&](const T&... each) { (push(s, each), ...); }, t);
}

template <class R>
struct Result {
  static R pop(Stack& s, size_t i) { return Read<R>::get(s[i]); }
};
template <>
struct Result<std::vector<TensorBase>> {
  static std::vector<TensorBase> pop(Stack& s, size_t i) {
    return s[i].get<std::vector<TensorBase>>();
  }
};
template <>
struct Result<DimVector> {
  static DimVector pop(Stack& s, size_t i) {
    return DimVector(ArrayRef<int64_t>(s[i].get<std::vector<int64_t>>()));
  }
};
template <class... T>
struct Result<std::tuple<T...>> {
  static std::tuple<T...> pop(Stack& s, size_t i) {
    return [&]<size_t... K>(std::index_sequence<K...>) {
      return std::tuple<T...>(Result<T>::pop(s, i + K)...);
    }(std::index_sequence_for<T...>());
  }
};

}  // namespace boxing

template <class R, class... A>
R Boxing<R(A...)>::to_boxed(const OperatorEntry& op,
                            DispatchKeySet keys,
                            A... args) {
  Stack stack;
  stack.reserve(sizeof...(A));
  (stack.push_back(boxing::pack(args)), ...);
  boxed_kernel(op, keys).call(op, keys, stack);
  if constexpr (!std::is_void_v<R>) return boxing::Result<R>::pop(stack, 0);
}

template <class R, class... A>
void Boxing<R(A...)>::from_stack(const OperatorEntry& op,
                                 void* pointer,
                                 Stack& stack) {
  size_t base = stack.size() - sizeof...(A);
  auto* function = reinterpret_cast<R (*)(A...)>(pointer);
  [&]<size_t... K>(std::index_sequence<K...>) {
    std::tuple<boxing::Holder<A>...> held{
        boxing::Holder<A>(stack[base + K])...};
    if constexpr (std::is_void_v<R>) {
      function(std::get<K>(held).get()...);
      // Written arguments are the results of in-place and out= operators.
      for (size_t i = 0; i < op.written_count; ++i) {
        stack.push_back(stack[base + op.written_first + i]);
      }
      stack.erase(
          stack.begin() + static_cast<std::ptrdiff_t>(base),
          stack.begin() + static_cast<std::ptrdiff_t>(base + sizeof...(A)));
    } else {
      R result = function(std::get<K>(held).get()...);
      stack.resize(base);
      boxing::push(stack, result);
    }
  }(std::index_sequence_for<A...>());
}

}  // namespace taeda
