// What factories share.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::native {

// NotImplementedError for layouts other than strided.
void check_layout(std::string_view op, std::optional<Layout> layout);
// Uninitialised and row-major.
Tensor new_tensor(std::string_view op,
                  IntArrayRef size,
                  std::optional<ScalarType> dtype,
                  std::optional<Layout> layout,
                  std::optional<Device> device);
// `t`, filled where settings::fill_uninitialized asks for it.
TAEDA_API Tensor unset(Tensor t);
// The dtype of a tensor made of a number.
ScalarType type_of_fill(const Scalar& value, std::optional<ScalarType> dtype);
// Uninitialised, with self's shape and, unless given, its dtype, device and
// memory order.
Tensor new_like(std::string_view op,
                const Tensor& self,
                std::optional<ScalarType> dtype,
                std::optional<Device> device,
                std::optional<MemoryFormat> format);
// Strides of a dense tensor whose dims are ordered as self's.
DimVector dense_strides(const Tensor& self);
void zero_fill(const Tensor& t);

}  // namespace taeda::native
