// The adapters of observed calls, in the place of those of boxing_impl.h from
// the first observer on. Instantiated once per signature by generated files.
#pragma once

#include <taeda/aten/core/boxing_impl.h>
#include <taeda/aten/core/observe.h>

#include <memory>

namespace taeda::observe {

template <class T>
void push_at(Stack& s, const void* value) {
  boxing::push(s, *static_cast<const T*>(value));
}

template <class Signature>
struct ObservedBoxing;
template <class R, class... A>
struct ObservedBoxing<R(A...)> {
  static R to_boxed(const OperatorEntry& op, DispatchKeySet keys, A... args) {
    // One element more: there are operators without arguments.
    const void* at[] = {std::addressof(args)..., nullptr};
    static constexpr Push kPush[] = {&push_at<std::decay_t<A>>..., nullptr};
    Call call(op, keys, {at, kPush, sizeof...(A)});
    if (call.kernel() == nullptr) {
      return Boxing<R(A...)>::to_boxed(op, keys, args...);
    }
    auto* kernel = reinterpret_cast<R (*)(A...)>(call.kernel());
    if constexpr (std::is_void_v<R>) {
      kernel(args...);
      call.wrote();
    } else {
      R result = kernel(args...);
      call.gave(&result, &push_at<R>);
      return result;
    }
  }
};

// The observed adapter of a plain one.
struct Adapter {
  void* plain;
  void* observed;
};
template <class Signature>
Adapter adapter() {
  return {reinterpret_cast<void*>(&Boxing<Signature>::to_boxed),
          reinterpret_cast<void*>(&ObservedBoxing<Signature>::to_boxed)};
}
// Generated: those of all signatures.
std::vector<Adapter> all_adapters();

}  // namespace taeda::observe
