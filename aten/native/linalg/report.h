// What LAPACK, or a kernel of a device, says of each matrix of a batch.
#pragma once

#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>

#include <string_view>

namespace taeda::native {

// On the host, whatever wraps it and wherever it lies. Waits for a device.
inline Tensor report_of(const Tensor& info) {
  Tensor plain = innermost_value(info);
  return plain.is_meta() ? plain : Tensor(on_cpu(plain));
}

// Raises for the first matrix whose info is not 0: an inverse divides by zero.
void check_inverted(std::string_view op, const Tensor& info);

}  // namespace taeda::native
