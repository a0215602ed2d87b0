// What LAPACK, or a kernel of a device, says of each matrix of a batch.
#pragma once

#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/c10/util/macros.h>

#include <string_view>

namespace taeda::native {

// On the host, whatever wraps it and wherever it lies. Waits for a device.
inline Tensor report_of(const Tensor& info) {
  Tensor plain = innermost_value(info);
  return plain.is_meta() ? plain : Tensor(on_cpu(plain));
}

// Each raises for the first matrix whose info is not 0, in LAPACK's numbers,
// and says what that means of a factor or of what was computed from it.
TAEDA_API void check_definite(std::string_view op, const Tensor& info);
TAEDA_API void check_no_zero(std::string_view op, const Tensor& info);
TAEDA_API void check_solved(std::string_view op, const Tensor& info);
TAEDA_API void check_inverted(std::string_view op, const Tensor& info);
TAEDA_API void check_eigenvalues(std::string_view op, const Tensor& info);
TAEDA_API void check_singular_values(std::string_view op, const Tensor& info);

// Refuses infinities and NaN. Waits for a device.
TAEDA_API void check_finite(std::string_view op, const Tensor& self);

}  // namespace taeda::native
