// What the generated bindings of operators include.
#pragma once

#include <taeda/aten/core/op_types.h>
#include <taeda/csrc/python/arg_parser.h>
#include <taeda/csrc/python/return_types.h>
#include <taeda/csrc/python/values.h>

namespace taeda::python {

// A factory's dtype and device beside an `out` tensor must be that tensor's.
inline void check_out_options(const TensorBase& out,
                              const std::optional<ScalarType>& dtype,
                              const std::optional<Device>& device) {
  TAEDA_CHECK(!dtype || *dtype == out.dtype(),
              message("dtype {} does not match dtype of out parameter ({})",
                      *dtype,
                      out.dtype()));
  TAEDA_CHECK(!device || device->type == out.device().type,
              message("device {} does not match device of out parameter ({})",
                      *device,
                      out.device()));
}

}  // namespace taeda::python
