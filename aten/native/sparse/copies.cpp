// Copies of sparse tensors, and tensors like them.
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/gen/ops/_conj_physical.h>
#include <taeda/gen/ops/_local_scalar_dense.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_sparse_to_sparse_.h>
#include <taeda/gen/ops/empty_like.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/full_like.h>
#include <taeda/gen/ops/normal_.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/to_dense.h>
#include <taeda/gen/ops/zeros.h>

namespace taeda::native {

namespace {

using Dtype = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;

Tensor with_parts(const Tensor& self,
                  const Tensor& offsets,
                  const Tensor& indices,
                  const Tensor& values) {
  if (is_coo(self)) {
    return make_coo(indices, values, self.sizes(), parts_of(self).coalesced);
  }
  return make_compressed(self.layout(), offsets, indices, values, self.sizes());
}

Tensor clone_sparse(const Tensor& self, MaybeFormat) {
  const SparseParts& p = parts_of(self);
  Tensor offsets = p.offsets.defined() ? ops::clone(p.offsets) : p.offsets;
  return with_parts(self, offsets, ops::clone(p.indices), ops::clone(p.values));
}

// Without entries, in the layout of `self`.
Tensor without_entries(const Tensor& self, Dtype dtype, MaybeDevice device) {
  ScalarType type = dtype.value_or(self.dtype());
  Device on = device.value_or(self.device());
  if (is_coo(self)) {
    return empty_coo(self.sizes(), sparse_dims(self), type, on);
  }
  const SparseParts& p = parts_of(self);
  int64_t batch = batch_dims(self);
  auto zeros = [&](DimVector sizes, ScalarType t) {
    return ops::zeros(sizes, t, std::nullopt, on);
  };
  DimVector indices(p.indices.sizes()), values(p.values.sizes());
  indices[static_cast<size_t>(batch)] = 0;
  values[static_cast<size_t>(batch)] = 0;
  return make_compressed(self.layout(),
                         zeros(DimVector(p.offsets.sizes()), p.offsets.dtype()),
                         zeros(indices, p.indices.dtype()),
                         zeros(values, type),
                         self.sizes());
}

// Indices stay shared, as in PyTorch: only the values have another dtype.
Tensor to_copy_sparse(const Tensor& self,
                      Dtype dtype,
                      MaybeLayout layout,
                      MaybeDevice device,
                      MaybeBool,
                      bool non_blocking,
                      MaybeFormat) {
  TAEDA_CHECK(!layout || *layout == self.layout(),
              "to(options) doesn't support converting to a different layout, "
              "but got self.layout being ",
              self.layout(),
              " and options.layout set as ",
              *layout);
  const SparseParts& p = parts_of(self);
  Device to = device.value_or(self.device());
  // Nothing tells how many entries a tensor without memory has.
  if (to.is_meta()) return without_entries(self, dtype, to);
  auto moved = [&](const Tensor& t, Dtype type) {
    return t.defined() ? ops::to(t,
                                 type,
                                 std::nullopt,
                                 to,
                                 std::nullopt,
                                 non_blocking,
                                 /*copy=*/true)
                       : t;
  };
  return with_parts(self,
                    moved(p.offsets, std::nullopt),
                    moved(p.indices, std::nullopt),
                    moved(p.values, dtype.value_or(self.dtype())));
}

void copy_sparse_into(const Tensor& self, const Tensor& src, bool) {
  TAEDA_CHECK(self.sizes() == src.sizes(),
              "copy_: sparse tensors are not broadcast: expected sizes ",
              self.sizes(),
              ", got ",
              src.sizes());
  ops::copy_sparse_to_sparse_(self, src);
}

// Without entries; of COO all dims are sparse.
Tensor empty_of(std::string_view op,
                IntArrayRef size,
                ScalarType dtype,
                Layout layout,
                Device on) {
  if (layout == Layout::Sparse) {
    return empty_coo(size, static_cast<int64_t>(size.size()), dtype, on);
  }
  TAEDA_CHECK(!is_blocked(layout),
              op,
              ": expected sparse compressed (non-block) tensor layout but got ",
              layout_word(layout));
  TAEDA_CHECK(size.size() >= 2,
              op,
              ": Only batched sparse compressed (non-block) tensors are "
              "supported, but got size ",
              size);
  DimVector entries(size.begin(), size.end() - 2), offsets = entries;
  entries.push_back(0);
  offsets.push_back(size[size.size() - (is_by_rows(layout) ? 2 : 1)] + 1);
  auto zeros = [&](const DimVector& sizes, ScalarType t) {
    return ops::zeros(sizes, t, std::nullopt, on);
  };
  return make_compressed(layout,
                         zeros(offsets, kLong),
                         zeros(entries, kLong),
                         zeros(entries, dtype),
                         size);
}

Tensor zeros_like_sparse(const Tensor& self,
                         Dtype dtype,
                         MaybeLayout layout,
                         MaybeDevice device,
                         MaybeBool,
                         MaybeFormat format) {
  Layout wanted = layout.value_or(self.layout());
  if (wanted == Layout::Strided) {
    return ops::zeros(self.sizes(),
                      dtype.value_or(self.dtype()),
                      std::nullopt,
                      device.value_or(self.device()));
  }
  TAEDA_CHECK(!format || !is_coo(self),
              "memory format option is only supported by strided tensors");
  if (wanted == self.layout()) return without_entries(self, dtype, device);
  return empty_of("zeros_like",
                  self.sizes(),
                  dtype.value_or(self.dtype()),
                  wanted,
                  device.value_or(self.device()));
}

// Entries of unknown values at the places of a compressed tensor; none of COO.
Tensor empty_like_sparse(const Tensor& self,
                         Dtype dtype,
                         MaybeLayout layout,
                         MaybeDevice device,
                         MaybeBool pin_memory,
                         MaybeFormat format) {
  if (layout.value_or(self.layout()) != self.layout() || is_coo(self)) {
    return zeros_like_sparse(self, dtype, layout, device, pin_memory, format);
  }
  const SparseParts& p = parts_of(self);
  return clone_sparse(with_values(self, ops::empty_like(p.values, dtype)),
                      std::nullopt);
}

Tensor new_sparse(const Tensor& self,
                  IntArrayRef size,
                  Dtype dtype,
                  MaybeLayout layout,
                  MaybeDevice device,
                  MaybeBool) {
  Layout wanted = layout.value_or(self.layout());
  ScalarType type = dtype.value_or(self.dtype());
  Device on = device.value_or(self.device());
  if (wanted == Layout::Strided) {
    return ops::zeros(size, type, std::nullopt, on);
  }
  return empty_of("new_zeros, new_empty", size, type, wanted, on);
}

Tensor zeros_sparse(IntArrayRef size,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool) {
  return empty_of("zeros, empty",
                  size,
                  dtype.value_or(default_dtype()),
                  *layout,
                  device.value_or(default_device()));
}
Tensor empty_sparse(IntArrayRef size,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool pin_memory,
                    MaybeFormat format) {
  TAEDA_CHECK(!format,
              "memory format option is only supported by strided tensors");
  return zeros_sparse(size, dtype, layout, device, pin_memory);
}

void zeros_into(IntArrayRef size, const Tensor& out) {
  set_parts(out,
            empty_of("zeros", size, out.dtype(), out.layout(), out.device()));
}

// What is filled are the entries, of which a new compressed tensor has none.
Tensor new_full_sparse(const Tensor& self,
                       IntArrayRef size,
                       const Scalar& value,
                       Dtype dtype,
                       MaybeLayout layout,
                       MaybeDevice device,
                       MaybeBool pin_memory) {
  Layout wanted = layout.value_or(self.layout());
  if (wanted == Layout::Strided) {
    return ops::full(size,
                     value,
                     dtype.value_or(self.dtype()),
                     std::nullopt,
                     device.value_or(self.device()));
  }
  TAEDA_CHECK_AS(NotImplemented,
                 wanted != Layout::Sparse,
                 "new_full: not implemented for COO tensors");
  return new_sparse(self, size, dtype, wanted, device, pin_memory);
}
Tensor new_ones_sparse(const Tensor& self,
                       IntArrayRef size,
                       Dtype dtype,
                       MaybeLayout layout,
                       MaybeDevice device,
                       MaybeBool pin_memory) {
  return new_full_sparse(
      self, size, Scalar(1), dtype, layout, device, pin_memory);
}

// Of compressed tensors, the value at the places of their entries.
Tensor full_like_sparse(const Tensor& self,
                        const Scalar& value,
                        Dtype dtype,
                        MaybeLayout layout,
                        MaybeDevice device,
                        MaybeBool pin_memory,
                        MaybeFormat) {
  Layout wanted = layout.value_or(self.layout());
  if (is_coo(self) && wanted == Layout::Strided) {
    return new_full_sparse(
        self, self.sizes(), value, dtype, wanted, device, pin_memory);
  }
  TAEDA_CHECK_AS(NotImplemented,
                 !is_coo(self) && wanted == self.layout(),
                 "ones_like, full_like: of a ",
                 layout_word(self.layout()),
                 " tensor in layout ",
                 wanted);
  const SparseParts& p = parts_of(self);
  return with_values(
      self,
      ops::full_like(p.values, value, dtype, std::nullopt, device, pin_memory));
}
Tensor ones_like_sparse(const Tensor& self,
                        Dtype dtype,
                        MaybeLayout layout,
                        MaybeDevice device,
                        MaybeBool pin_memory,
                        MaybeFormat format) {
  return full_like_sparse(
      self, Scalar(1), dtype, layout, device, pin_memory, format);
}

// Random numbers at the places of a compressed tensor's entries.
void normal_sparse(const Tensor& self,
                   double mean,
                   double std,
                   const std::optional<Generator>& generator) {
  TAEDA_CHECK_AS(NotImplemented,
                 !is_coo(self),
                 "normal_: not implemented for COO tensors");
  Tensor values = ops::empty_like(parts_of(self).values);
  ops::normal_(values, mean, std, generator);
  set_parts(self, with_values(self, values));
}
Tensor randn_like_sparse(const Tensor& self,
                         Dtype dtype,
                         MaybeLayout layout,
                         MaybeDevice device,
                         MaybeBool pin_memory,
                         MaybeFormat format) {
  Tensor out = full_like_sparse(
      self, Scalar(0), dtype, layout, device, pin_memory, format);
  ops::normal_(out);
  return out;
}

void fill_sparse(const Tensor& self, const Scalar& value) {
  TAEDA_CHECK_AS(
      NotImplemented, !is_coo(self), "fill_: not implemented for COO tensors");
  const SparseParts& p = parts_of(self);
  set_parts(self, with_values(self, ops::full_like(p.values, value)));
}

void conj_physical_into(const Tensor& self, const Tensor& out) {
  set_parts(out, self.is_complex() ? ops::_conj_physical(self) : self);
}

Scalar item_sparse(const Tensor& self) {
  return ops::_local_scalar_dense(ops::to_dense(self));
}

void zero_sparse(const Tensor& self) {
  set_parts(self, without_entries(self, std::nullopt, std::nullopt));
}

}  // namespace

void add_copies(Library& m) {
  m.impl("clone", clone_sparse);
  m.impl("_to_copy", to_copy_sparse);
  m.impl("copy_", copy_sparse_into);
  m.impl("zeros_like", zeros_like_sparse);
  m.impl("empty_like", empty_like_sparse);
  m.impl("zero_", zero_sparse);
  m.impl("conj_physical.out", conj_physical_into);
  m.impl("zeros", zeros_sparse);
  m.impl("zeros.out", zeros_into);
  m.impl("empty.memory_format", empty_sparse);
  m.impl("_local_scalar_dense", item_sparse);
  m.impl("ones_like", ones_like_sparse);
  m.impl("full_like", full_like_sparse);
  m.impl("new_full", new_full_sparse);
  m.impl("new_ones", new_ones_sparse);
  m.impl("normal_", normal_sparse);
  m.impl("randn_like", randn_like_sparse);
  m.impl("fill_.Scalar", fill_sparse);
  m.impl("new_zeros", new_sparse);
  m.impl("new_empty", new_sparse);
}

}  // namespace taeda::native
