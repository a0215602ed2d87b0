// Lengths of sequences as ctc_loss takes them.
#pragma once

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/spec.h>

#include <cstdint>
#include <vector>

namespace taeda::native {

using Lengths = std::vector<int64_t>;

// Waits for a device.
inline Lengths list_of(const Tensor& lengths) {
  Tensor t = contiguous_as(Tensor(on_cpu(lengths)), kLong);
  return {t.const_data<int64_t>(), t.const_data<int64_t>() + t.numel()};
}

}  // namespace taeda::native
