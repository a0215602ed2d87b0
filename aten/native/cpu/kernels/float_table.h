// The kernels of an operator for each floating dtype.
#pragma once

#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/half.h>

#include <type_traits>

namespace taeda {

template <template <class> class Kernels>
struct FloatTable {
  Kernels<float> f32;
  Kernels<double> f64;
  Kernels<BFloat16> bf16;
  Kernels<Half> f16;
  template <class T>
  const Kernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else if constexpr (std::is_same_v<T, double>) {
      return f64;
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      return bf16;
    } else {
      return f16;
    }
  }
};

}  // namespace taeda
