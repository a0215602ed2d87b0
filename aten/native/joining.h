// Which tensors cat leaves out.
#pragma once

namespace taeda::native {

// PyTorch lets tensors of shape [0] pass beside any others.
template <class T>
bool is_skipped(const T& t) {
  return t.dim() == 1 && t.sizes()[0] == 0;
}

}  // namespace taeda::native
