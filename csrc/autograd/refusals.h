// Tensors that an operator has no derivative by.
#pragma once

#include <taeda/csrc/autograd/record.h>

namespace taeda::autograd {

[[noreturn]] TAEDA_API void refuse_gradient(std::string_view op,
                                            std::string_view argument);

// RuntimeError if grad mode is on and the argument requires gradients.
template <class T>
void refuse_gradient(std::string_view op,
                     std::string_view argument,
                     const T& value) {
  if (needs_grad(value) && grad_enabled()) [[unlikely]] {
    refuse_gradient(op, argument);
  }
}

}  // namespace taeda::autograd
