// One value for every element, and in-place changes of geometry and storage.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/settings.h>
#include <taeda/gen/native/fill.h>
#include <taeda/gen/native/resize_.h>
#include <taeda/gen/native/resize_as_.h>
#include <taeda/gen/native/set_.h>
#include <taeda/gen/native/zero.h>

namespace taeda::native {

template <class I>
void fill_scalar_shape(const Spec<I>& self, const Scalar&, Plan<I>& plan) {
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(fill_scalar_shape);

template <class I>
void fill_tensor_inplace_shape(const Spec<I>&, const Spec<I>& value, Plan<I>&) {
  TAEDA_CHECK(
      value.dim() == 0,
      "fill_ only supports 0-dimension value tensor but got tensor with ",
      value.dim(),
      " dimensions.");
}
TAEDA_SHAPE(fill_tensor_inplace_shape);

template <class I>
void fill_tensor_shape(const Spec<I>& self,
                       const Spec<I>& value,
                       Plan<I>& plan) {
  fill_tensor_inplace_shape(self, value, plan);
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(fill_tensor_shape);

template <class I>
void zero_shape(const Spec<I>& self, Plan<I>& plan) {
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(zero_shape);

namespace {

Scalar only_value(const Tensor& value) {
  const Tensor here = on_cpu(value);
  return Scalar::load(here.dtype(), here.const_raw_data());
}

}  // namespace

void fill_values(const Tensor&, const Scalar& value, const Tensor& out) {
  fill_with(out, value);
}
void fill_values(const Tensor&, const Tensor& value, const Tensor& out) {
  fill_with(out, only_value(value));
}
// A number written twice to one place is still that number.
void fill_(const Tensor& self, const Scalar& value) { fill_with(self, value); }
void fill_(const Tensor& self, const Tensor& value) {
  check_no_internal_overlap("fill_", self);
  if (!self.is_meta()) fill_with(self, only_value(value));
}

void zero_values(const Tensor&, const Tensor& out) { zero_fill(out); }
void zero_(const Tensor& self) { zero_fill(self); }

namespace {

// Not for tensors that autograd looks at: their geometry is in its records.
void check_resizable(const Tensor& self) {
  TAEDA_CHECK(inference_mode() || !self.requires_grad(),
              "cannot resize variables that require grad");
}

}  // namespace

void resize_(const Tensor& self,
             ArrayRef<int64_t> size,
             std::optional<MemoryFormat> memory_format) {
  check_resizable(self);
  MemoryFormat format = memory_format.value_or(MemoryFormat::Contiguous);
  TAEDA_CHECK(format != MemoryFormat::Preserve,
              "resize_: unsupported memory format preserve_format");
  size_t before = self.storage()->nbytes();
  resize_tensor(self, size);
  if (format != MemoryFormat::Contiguous) {
    resize_tensor_strided(self, size, format_strides(size, format));
  }
  // What the storage gained, as a row.
  size_t itemsize = self.itemsize(), first = before / itemsize;
  size_t all = self.storage()->nbytes() / itemsize;
  if (all > first && settings::fill_uninitialized.load()) {
    unset(make_view(self,
                    {static_cast<int64_t>(all - first)},
                    {1},
                    static_cast<int64_t>(first)));
  }
}

void resize_as_(const Tensor& self,
                const Tensor& the_template,
                std::optional<MemoryFormat> memory_format) {
  check_resizable(self);
  resize_tensor(self, the_template.sizes());
  if (!memory_format) return;
  MemoryFormat format = *memory_format == MemoryFormat::Preserve
                            ? the_template.suggest_memory_format()
                            : *memory_format;
  resize_tensor_strided(
      self, self.sizes(), format_strides(self.sizes(), format));
}

void set_(const Tensor& self, const Tensor& source) {
  set_(self, source, source.storage_offset(), source.sizes(), source.strides());
}

void set_(const Tensor& self,
          const Tensor& source,
          int64_t storage_offset,
          ArrayRef<int64_t> size,
          ArrayRef<int64_t> stride) {
  TAEDA_CHECK(self.dtype() == source.dtype(),
              "Expected a Tensor of type ",
              self.dtype(),
              " but got a type ",
              source.dtype(),
              " for argument 1 'source'");
  DimVector own(size), strides(stride);
  if (stride.empty()) strides = contiguous_strides(size);
  TAEDA_CHECK(strides.size() == own.size(),
              "set_: mismatch in length of strides and shape, got ",
              strides,
              " and ",
              own);
  TAEDA_CHECK(storage_offset >= 0,
              "set_: Negative storage_offset not supported, got ",
              storage_offset);
  for (int64_t s : strides) {
    TAEDA_CHECK(
        s >= 0, "set_: Negative strides are not supported, got ", stride);
  }
  TensorImpl& impl = *self.impl();
  size_t needed = required_bytes(own, strides, storage_offset, self.itemsize());
  Storage storage = source.storage();
  if (needed > storage->nbytes()) storage->resize(needed);
  impl.set_storage(std::move(storage));
  impl.set_sizes_and_strides(own, strides, storage_offset);
}

void set_(const Tensor& self) {
  Tensor fresh = make_tensor("set_", {0}, self.dtype(), self.device());
  self.impl()->set_storage(fresh.storage());
  self.impl()->set_sizes_and_strides({0}, {1}, 0);
}

}  // namespace taeda::native
