// Calls of one operator for each entry of lists: the `_foreach_` operators.
#pragma once

#include <taeda/aten/core/op_types.h>

#include <utility>
#include <vector>

namespace taeda::foreach {

// A tensor of one dim that holds the number of each call.
struct Numbers {
  const TensorBase& tensor;
};
// A tensor of no dims that all calls take.
struct Single {
  const TensorBase& tensor;
};

[[noreturn]] TAEDA_API void refuse_lists(size_t n, size_t other);
[[noreturn]] TAEDA_API void refuse_numbers(size_t n, size_t other);
TAEDA_API void check(size_t n, const Numbers& numbers);
TAEDA_API void check(size_t n, const Single& single);
inline void check(size_t n, TensorBaseList list) {
  if (TAEDA_UNLIKELY(list.size() != n)) refuse_lists(n, list.size());
}
inline void check(size_t n, ArrayRef<Scalar> list) {
  if (TAEDA_UNLIKELY(list.size() != n)) refuse_numbers(n, list.size());
}
template <class T>
void check(size_t, const T&) {}

// What call i gets of an argument.
inline const TensorBase& entry(TensorBaseList list, size_t i) {
  return list[i];
}
inline const Scalar& entry(ArrayRef<Scalar> list, size_t i) { return list[i]; }
inline const TensorBase& entry(const Single& single, size_t) {
  return single.tensor;
}
inline Scalar entry(const Numbers& numbers, size_t i) {
  const TensorBase& t = numbers.tensor;
  auto* data = static_cast<const char*>(t.const_raw_data());
  return Scalar::load(t.dtype(), data + i * t.itemsize());
}
template <class T>
const T& entry(const T& all, size_t) {
  return all;
}

// The length of the first list of tensors, which the others must have.
template <class First, class... Rest>
size_t length(const First& first, const Rest&... rest) {
  if constexpr (std::is_same_v<First, TensorBaseList>) {
    TAEDA_CHECK(!first.empty(), "Tensor list must have at least one tensor.");
    return first.size();
  } else {
    return length(rest...);
  }
}

// The first tensor of the first list, which is not empty.
template <class First, class... Rest>
const TensorBase& first_of(const First& first, const Rest&... rest) {
  if constexpr (std::is_same_v<First, TensorBaseList>) {
    return first[0];
  } else {
    return first_of(rest...);
  }
}

// While it is there, the device of `first` may keep calls of this thread and
// run several at once (`Launchers::list`); finish() runs what was kept.
class TAEDA_API Together {
 public:
  Together(const TensorBase& first, size_t n) {
    if (n > 1 && !first.is_cpu()) begin(first);
  }
  ~Together() {
    if (list_ != nullptr) finish_quietly();
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  void finish() {
    if (list_ != nullptr) std::exchange(list_, nullptr)(false);
  }

 private:
  void begin(const TensorBase& first);
  void finish_quietly() noexcept;

  void (*list_)(bool) = nullptr;
};

template <class T>
DispatchKeySet keys_in(const T& argument) {
  if constexpr (std::is_base_of_v<TensorBase, T>) return keys_of(argument);
  return {};
}

// An operator whose C++ function takes arguments of the types A. Instances are
// shared by all operators of one signature.
template <class... A>
struct Element {
  const OperatorEntry& op;

  template <class... Given>
  std::vector<TensorBase> results(const Given&... given) const {
    size_t n = checked_length(given...);
    std::vector<TensorBase> out;
    out.reserve(n);
    Together together(first_of(given...), n);
    for (size_t i = 0; i < n; ++i) {
      out.push_back(call<TensorBase>(entry(given, i)...));
    }
    together.finish();
    return out;
  }

  // For operators that write into their first argument.
  template <class... Given>
  void write(const Given&... given) const {
    size_t n = checked_length(given...);
    Together together(first_of(given...), n);
    for (size_t i = 0; i < n; ++i) call<void>(entry(given, i)...);
    together.finish();
  }

 private:
  template <class... Given>
  static size_t checked_length(const Given&... given) {
    size_t n = length(given...);
    (check(n, given), ...);
    return n;
  }

  template <class R>
  R call(A... arguments) const {
    return dispatch<R, A...>(
        op, (DispatchKeySet() | ... | keys_in(arguments)), arguments...);
  }
};

}  // namespace taeda::foreach
