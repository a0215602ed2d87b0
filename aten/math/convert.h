// Conversion of one element between compute types, as tensors are cast.
#pragma once

#include <taeda/aten/math/prim.h>

namespace taeda::math {

// Floats become small integers by way of 64 bits, so that numbers beyond their
// range wrap around.
template <class To, class From>
TAEDA_FN To convert(From v) {
  if constexpr (kIsSame<To, From>) {
    return v;
  } else if constexpr (kIsSame<To, bool>) {
    return v != 0;
  } else if constexpr (Floating<From> && !Floating<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<long long>(v));
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace taeda::math
