#pragma once

#include <taeda/aten/core/boxing.h>
#include <taeda/aten/core/ivalue.h>

#include <optional>
#include <tuple>
#include <utility>

namespace taeda {
namespace boxing {

// Conversions are functions of the library, not templates: four hundred pairs
// of adapters are made of them, and each would repeat the variant's
// alternatives.

// To a stack value ------------------------------------------------------------

TAEDA_API void push(Stack& s, const TensorBase& t);
TAEDA_API void push(Stack& s, const OptionalTensor& t);
TAEDA_API void push(Stack& s, TensorBaseList l);
TAEDA_API void push(Stack& s, const std::vector<TensorBase>& l);
TAEDA_API void push(Stack& s, ArrayRef<OptionalTensor> l);
TAEDA_API void push(Stack& s, const Scalar& v);
TAEDA_API void push(Stack& s, int64_t v);
TAEDA_API void push(Stack& s, double v);
TAEDA_API void push(Stack& s, bool v);
TAEDA_API void push(Stack& s, std::string_view v);
TAEDA_API void push(Stack& s, ScalarType v);
TAEDA_API void push(Stack& s, Layout v);
TAEDA_API void push(Stack& s, MemoryFormat v);
TAEDA_API void push(Stack& s, Device v);
TAEDA_API void push(Stack& s, const Generator& v);
TAEDA_API void push(Stack& s, ArrayRef<int64_t> l);
TAEDA_API void push(Stack& s, ArrayRef<double> l);
TAEDA_API void push(Stack& s, ArrayRef<Scalar> l);
TAEDA_API void push(Stack& s, ArrayRef<bool> l);
TAEDA_API void push_none(Stack& s);
template <class T>
void push(Stack& s, const std::optional<T>& v) {
  v ? push(s, *v) : push_none(s);
}
template <class... T>
void push(Stack& s, const std::tuple<T...>& t) {
  std::apply([&](const T&... each) { (push(s, each), ...); }, t);
}

// From a stack value: an object that lives during the call --------------------

template <class T>
struct Read;  // Read<T>::get(const IValue&) -> T

#define TAEDA_READ(type)                        \
  template <>                                   \
  struct Read<type> {                           \
    TAEDA_API static type get(const IValue& v); \
  };
TAEDA_READ(int64_t)
TAEDA_READ(double)
TAEDA_READ(bool)
TAEDA_READ(Scalar)
TAEDA_READ(std::string_view)
TAEDA_READ(ScalarType)
TAEDA_READ(Layout)
TAEDA_READ(MemoryFormat)
TAEDA_READ(Device)
TAEDA_READ(Generator)
TAEDA_READ(TensorBase)
TAEDA_READ(ArrayRef<int64_t>)
TAEDA_READ(ArrayRef<double>)
TAEDA_READ(ArrayRef<Scalar>)
TAEDA_READ(TensorBaseList)
TAEDA_READ(std::vector<TensorBase>)
#undef TAEDA_READ

template <class T>
struct Read<std::optional<T>> {
  static std::optional<T> get(const IValue& v) {
    if (v.is_none()) return std::nullopt;
    return Read<T>::get(v);
  }
};

// The tensor in a stack value, which outlives the call; undefined for None.
TAEDA_API const TensorBase& tensor_in(const IValue& v);

template <class A>
struct Holder {
  std::decay_t<A> value;
  explicit Holder(const IValue& v) : value(Read<std::decay_t<A>>::get(v)) {}
  A get() { return value; }
};
template <>
struct Holder<const TensorBase&> {
  const TensorBase& value;
  explicit Holder(const IValue& v) : value(tensor_in(v)) {}
  const TensorBase& get() { return value; }
};
template <>
struct TAEDA_API Holder<ArrayRef<bool>> {
  SmallVector<bool, 4> value;
  explicit Holder(const IValue& v);
  ~Holder();
  ArrayRef<bool> get() { return value; }
};
template <>
struct TAEDA_API Holder<ArrayRef<OptionalTensor>> {
  std::vector<OptionalTensor> value;
  explicit Holder(const IValue& v);
  ~Holder();
  ArrayRef<OptionalTensor> get() { return value; }
};

// Results ---------------------------------------------------------------------

// The arguments from `base` on give way to the result, or to the arguments that
// in-place and out= operators have written, which are their results.
TAEDA_API void drop_arguments(Stack& stack, size_t base);
TAEDA_API void keep_written(const OperatorEntry& op, Stack& stack, size_t base);

template <class R>
struct Result {
  static R pop(Stack& s, size_t i) { return Read<R>::get(s[i]); }
};
template <class... T>
struct Result<std::tuple<T...>> {
  static std::tuple<T...> pop(Stack& s, size_t i) {
    return [&]<size_t... K>(std::index_sequence<K...>) {
      return std::tuple<T...>(Result<T>::pop(s, i + K)...);
    }(std::index_sequence_for<T...>());
  }
};

// The stack of one call. Not inline: its construction and destruction would be
// half of each adapter.
class TAEDA_API CallStack {
 public:
  explicit CallStack(size_t count);
  ~CallStack();
  CallStack(const CallStack&) = delete;
  void run(const OperatorEntry& op, DispatchKeySet keys);
  Stack values;
};

}  // namespace boxing

template <class R, class... A>
R Boxing<R(A...)>::to_boxed(const OperatorEntry& op,
                            DispatchKeySet keys,
                            A... args) {
  boxing::CallStack stack(sizeof...(A));
  (boxing::push(stack.values, args), ...);
  stack.run(op, keys);
  if constexpr (!std::is_void_v<R>) {
    return boxing::Result<R>::pop(stack.values, 0);
  }
}

template <class R, class... A>
void Boxing<R(A...)>::from_stack(const OperatorEntry& op,
                                 void* pointer,
                                 Stack& stack) {
  size_t base = stack.size() - sizeof...(A);
  auto* function = reinterpret_cast<R (*)(A...)>(pointer);
  [&]<size_t... K>(std::index_sequence<K...>) {
    // The holders are temporaries, which live until the call is over.
    if constexpr (std::is_void_v<R>) {
      function(boxing::Holder<A>(stack[base + K]).get()...);
      boxing::keep_written(op, stack, base);
    } else {
      R result = function(boxing::Holder<A>(stack[base + K]).get()...);
      boxing::drop_arguments(stack, base);
      boxing::push(stack, result);
    }
  }(std::index_sequence_for<A...>());
}

}  // namespace taeda
