// copy_, clone, to, and the only element of a tensor as a number.
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/gen/native/_local_scalar_dense.h>
#include <taeda/gen/native/_to_copy.h>
#include <taeda/gen/native/clone.h>
#include <taeda/gen/native/contiguous.h>
#include <taeda/gen/native/copy.h>
#include <taeda/gen/native/copy_.h>
#include <taeda/gen/native/is_nonzero.h>
#include <taeda/gen/native/item.h>
#include <taeda/gen/native/lift.h>
#include <taeda/gen/native/result_type.h>
#include <taeda/gen/native/to.h>
#include <taeda/gen/ops/_local_scalar_dense.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/item.h>

namespace taeda::native {

void copy_(const Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.is_meta()) return;  // nothing to write, and nothing to overlap
  check_no_internal_overlap("copy_", self);
  check_no_partial_overlap("copy_", self, src);
  copy_into(self, src, non_blocking);
}

template <class I>
void copy_shape(const Spec<I>& self, const Spec<I>& src, bool, Plan<I>& plan) {
  auto common = broadcast_shapes<I>("copy_", self.sizes(), src.sizes());
  TAEDA_CHECK(std::equal(common.begin(),
                         common.end(),
                         self.sizes().begin(),
                         self.sizes().end()),
              "copy_: output with shape ",
              self.sizes(),
              " doesn't match the broadcast shape ",
              ArrayRef<I>(common));
  // With the gaps that self has, so that a view by strides finds its elements.
  bool repeats = false;  // an expanded dim
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    repeats = repeats || (self.strides()[d] == 0 && self.sizes()[d] != 1);
  }
  if (repeats) return plan.set_like(0, self, self.dtype());
  plan.set(0, self.sizes(), self.strides(), self.dtype());
}
TAEDA_SHAPE(copy_shape);

void copy_values(const Tensor&, const Tensor& src, bool, const Tensor& out) {
  copy_into(out, src);
}

template <class I>
void clone_shape(const Spec<I>& self,
                 std::optional<MemoryFormat> memory_format,
                 Plan<I>& plan) {
  plan_like(plan, self, std::nullopt, std::nullopt, memory_format);
}
TAEDA_SHAPE(clone_shape);

void clone_values(const Tensor& self,
                  std::optional<MemoryFormat>,
                  const Tensor& out) {
  copy_into(out, self);
}

Tensor lift(const Tensor& self) {
  return Tensor(self.impl()->shallow_copy(/*share_version=*/false));
}

Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  if (memory_format == MemoryFormat::Preserve && self.is_contiguous()) {
    return self;
  }
  TAEDA_CHECK(memory_format != MemoryFormat::Preserve,
              "preserve memory format is unsupported by the contiguous "
              "operator");
  if (self.is_contiguous(memory_format)) return self;
  return ops::clone(self, memory_format);
}

template <class I>
void to_copy_shape(const Spec<I>& self,
                   std::optional<ScalarType> dtype,
                   std::optional<Layout> layout,
                   std::optional<Device>,
                   std::optional<bool>,
                   bool,
                   std::optional<MemoryFormat> memory_format,
                   Plan<I>& plan) {
  check_layout("to", layout);
  plan_like(plan, self, dtype, std::nullopt, memory_format);
}
TAEDA_SHAPE(to_copy_shape);

void to_copy_values(const Tensor& self,
                    std::optional<ScalarType>,
                    std::optional<Layout>,
                    std::optional<Device>,
                    std::optional<bool>,
                    bool non_blocking,
                    std::optional<MemoryFormat>,
                    const Tensor& out) {
  copy_into(out, self, non_blocking);
}

namespace {

Tensor converted(const Tensor& self,
                 ScalarType dtype,
                 Device device,
                 bool non_blocking,
                 bool copy,
                 std::optional<MemoryFormat> format) {
  MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  bool same_format =
      f == MemoryFormat::Preserve || self.suggest_memory_format() == f;
  bool same_device = self.device() == device ||
                     (self.device().type == device.type && !device.has_index());
  if (!copy && self.dtype() == dtype && same_device && same_format) return self;
  return ops::_to_copy(
      self, dtype, std::nullopt, device, std::nullopt, non_blocking, f);
}

}  // namespace

Tensor to(const Tensor& self,
          std::optional<ScalarType> dtype,
          std::optional<Layout> layout,
          std::optional<Device> device,
          std::optional<bool>,
          bool non_blocking,
          bool copy,
          std::optional<MemoryFormat> memory_format) {
  check_layout("to", layout);
  return converted(self,
                   dtype.value_or(self.dtype()),
                   device.value_or(self.device()),
                   non_blocking,
                   copy,
                   memory_format);
}
Tensor to(const Tensor& self,
          Device device,
          ScalarType dtype,
          bool non_blocking,
          bool copy,
          std::optional<MemoryFormat> memory_format) {
  return converted(self, dtype, device, non_blocking, copy, memory_format);
}
Tensor to(const Tensor& self,
          ScalarType dtype,
          bool non_blocking,
          bool copy,
          std::optional<MemoryFormat> memory_format) {
  return converted(
      self, dtype, self.device(), non_blocking, copy, memory_format);
}
Tensor to(const Tensor& self,
          const Tensor& other,
          bool non_blocking,
          bool copy,
          std::optional<MemoryFormat> memory_format) {
  return converted(
      self, other.dtype(), other.device(), non_blocking, copy, memory_format);
}

// Numbers --------------------------------------------------------------------

Scalar _local_scalar_dense(const Tensor& self) {
  TAEDA_CHECK(self.numel() == 1,
              "_local_scalar_dense: expected a tensor with one element, got ",
              self.sizes());
  if (!self.is_cpu()) return _local_scalar_dense(on_cpu(self));
  Scalar value = Scalar::load(self.dtype(), self.const_raw_data());
  if (self.is_conj()) value = value.conj();
  return self.is_neg() ? -value : value;
}

Scalar item(const Tensor& self) {
  TAEDA_CHECK(self.numel() == 1,
              "a Tensor with ",
              self.numel(),
              " elements cannot be converted to Scalar");
  TAEDA_CHECK(!self.is_meta(),
              "Tensor.item() cannot be called on meta tensors");
  return ops::_local_scalar_dense(self);
}

bool is_nonzero(const Tensor& self) {
  TAEDA_CHECK(self.numel() != 0,
              "Boolean value of Tensor with no values is ambiguous");
  TAEDA_CHECK(self.numel() < 2,
              "Boolean value of Tensor with more than one value is ambiguous");
  Scalar value = ops::item(self);
  if (value.is_complex()) return !value.equal(0.0);
  return value.is_floating() ? value.to_double() != 0 : value.to_bool();
}

// Dtypes ---------------------------------------------------------------------

ScalarType result_type_of(const Tensor& tensor, const Tensor& other) {
  return result_type(tensor, other);
}
ScalarType result_type_of(const Tensor& tensor, const Scalar& other) {
  return result_type(tensor, other);
}
ScalarType result_type_of(const Scalar& scalar, const Tensor& tensor) {
  return result_type(tensor, scalar);
}
ScalarType result_type_of(const Scalar& scalar1, const Scalar& scalar2) {
  ResultType type;
  type.add(scalar1);
  type.add(scalar2);
  return type.get();
}

}  // namespace taeda::native
