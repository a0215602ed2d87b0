// What factories share.
#pragma once

#include <taeda/aten/iter/spec.h>

namespace taeda::native {

// The arguments that all factories end with.
using Dtype = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;

// NotImplementedError for layouts other than strided.
void check_layout(std::string_view op, MaybeLayout layout);
// Fills `t` where settings::fill_uninitialized asks for it.
TAEDA_API void unset(const Tensor& t);
// The dtype of a tensor made of a number.
ScalarType type_of_fill(const Scalar& value, Dtype dtype);
// Uninitialised, with self's shape and, unless given, its dtype, device and
// memory order.
Tensor new_like(std::string_view op,
                const Tensor& self,
                Dtype dtype,
                MaybeDevice device,
                MaybeFormat format);
// Strides of a dense tensor whose dims are ordered as self's.
DimVector dense_strides(const Tensor& self);

// Shape rules of factories, see Note [Shape rules] ---------------------------

// Row-major.
template <class I>
void plan_size(Plan<I>& plan,
               ArrayRef<I> size,
               ScalarType dtype,
               MaybeLayout layout) {
  check_layout(plan.op(), layout);
  plan.set(0, size, dtype);
}

// With self's shape; without a format in the order of self's dims.
template <class I>
void plan_like(Plan<I>& plan,
               const Spec<I>& self,
               Dtype dtype,
               MaybeLayout layout,
               MaybeFormat format) {
  check_layout(plan.op(), layout);
  MemoryFormat order = format.value_or(MemoryFormat::Preserve);
  ScalarType type = dtype.value_or(self.dtype());
  if (order == MemoryFormat::Preserve) {
    plan.set_like(0, self, type);
  } else {
    plan.set(0, self.sizes(), order, type);
  }
}

// An out= tensor that is written in the order of its own memory.
template <class I>
void plan_into(Plan<I>& plan, ArrayRef<I> size, const Spec<I>& out) {
  if (size == out.sizes()) {
    plan.set(0, size, out.strides(), out.dtype());
  } else {
    plan.set(0, size, out.dtype());
  }
}

// The shape of both operands, dims ordered as in the first one that has it.
template <class I>
void plan_pairs(Plan<I>& plan,
                const Spec<I>& a,
                const Spec<I>& b,
                ScalarType dtype) {
  Dims<I> shape = broadcast_shapes<I>(plan.op(), a.sizes(), b.sizes());
  if (a.sizes() == ArrayRef<I>(shape)) return plan.set_like(0, a, dtype);
  if (b.sizes() == ArrayRef<I>(shape)) return plan.set_like(0, b, dtype);
  plan.set(0, shape, dtype);
}

}  // namespace taeda::native
