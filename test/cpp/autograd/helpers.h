// Tensors with given values, for the tests of autograd.
#pragma once

#include <taeda/csrc/autograd/graph.h>
#include <taeda/csrc/autograd/inplace.h>

#include "../errors.h"

namespace taeda::autograd {

inline Tensor tensor(std::vector<float> values, bool requires_grad = false) {
  Tensor t = make_tensor(
      "test", IntArrayRef({static_cast<int64_t>(values.size())}), kFloat);
  std::copy(values.begin(), values.end(), t.mutable_data<float>());
  if (requires_grad) set_requires_grad(t, true);
  return t;
}

inline std::vector<float> values(const Tensor& t) {
  std::vector<float> out;
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t stride = t.dim() == 0 ? 0 : t.stride(-1);
    out.push_back(t.const_data<float>()[i * stride]);
  }
  return out;
}

}  // namespace taeda::autograd
