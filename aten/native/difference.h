// The dtype that isin compares in.
#pragma once

#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/spec.h>

namespace taeda::native {

template <class I>
ScalarType common_type(const Spec<I>& elements, const Spec<I>& tests) {
  ResultType type;
  type.add(elements);
  type.add(tests);
  return type.get();
}

}  // namespace taeda::native
