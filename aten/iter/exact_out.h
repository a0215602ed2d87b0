// out= tensors that must have the dtype of what is computed.
#pragma once

#include <taeda/aten/iter/output.h>

namespace taeda::derived {

// The dtype of what is computed into `out`: its own, and `wanted` if given.
TAEDA_API ScalarType dtype_into(std::string_view op,
                                std::optional<ScalarType> wanted,
                                const TensorBase& out);
// write_out into a tensor of the same dtype.
TAEDA_API void write_exact(std::string_view op,
                           const TensorBase& computed,
                           const TensorBase& out);
// write_out into a complex tensor of what is complex, else into one of floats.
TAEDA_API void write_within_kind(std::string_view op,
                                 const TensorBase& computed,
                                 const TensorBase& out);
// write_out, with linear algebra's phrase where the dtype is refused.
TAEDA_API void write_safely(std::string_view op,
                            const TensorBase& computed,
                            const TensorBase& out);
// All out= tensors must have the dtypes that are planned.
TAEDA_API void refuse_other_dtypes(Plan<int64_t>& plan);

}  // namespace taeda::derived
