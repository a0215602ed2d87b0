// The two adapters between a C++ signature and a stack. They are defined in
// boxing_impl.h and instantiated once per signature by generated files.
#pragma once

#include <taeda/aten/core/dispatcher.h>

namespace taeda {

template <class Signature>
struct Boxing;

template <class R, class... A>
struct Boxing<R(A...)> {
  static R to_boxed(const OperatorEntry& op, DispatchKeySet keys, A... args);
  static void from_stack(const OperatorEntry& op, void* function, Stack& stack);
};

}  // namespace taeda
