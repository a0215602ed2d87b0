// Constructors: what they fill in where arguments are left out.
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/validate.h>
#include <taeda/aten/settings.h>
#include <taeda/gen/native/_sparse_compressed_tensor_unsafe.h>
#include <taeda/gen/native/_sparse_coo_tensor_unsafe.h>
#include <taeda/gen/native/sparse_bsc_tensor.h>
#include <taeda/gen/native/sparse_bsr_tensor.h>
#include <taeda/gen/native/sparse_compressed_tensor.h>
#include <taeda/gen/native/sparse_coo_tensor.h>
#include <taeda/gen/native/sparse_csc_tensor.h>
#include <taeda/gen/native/sparse_csr_tensor.h>
#include <taeda/gen/ops/_sparse_compressed_tensor_unsafe.h>
#include <taeda/gen/ops/_sparse_coo_tensor_unsafe.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/max.h>
#include <taeda/gen/ops/min.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/to.h>

#include <algorithm>
#include <array>

namespace taeda::native {

namespace {

using Dtype = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;

Tensor with_options(const Tensor& t, Dtype dtype, MaybeDevice device) {
  return ops::to(t, dtype, std::nullopt, device);
}

void check_coo_layout(MaybeLayout layout) {
  TAEDA_CHECK(!layout || *layout == Layout::Sparse,
              "expected sparse layout, but got layout ",
              layout_word(layout.value_or(Layout::Sparse)));
}

// One more than the largest place along each sparse dim, then dense sizes.
DimVector inferred_sizes(const Tensor& indices, const Tensor& values) {
  DimVector sizes;
  for (int64_t d = 0; d < indices.size(0); ++d) {
    int64_t size = 0;
    if (indices.size(1) > 0) {
      Tensor row = ops::select(indices, 0, d);
      int64_t least = ops::item(ops::min(row)).to_int();
      TAEDA_CHECK(least >= 0, "found negative index ", least, " for dim ", d);
      size = ops::item(ops::max(row)).to_int() + 1;
    }
    sizes.push_back(size);
  }
  for (int64_t s : last_sizes(values, 1)) sizes.push_back(s);
  return sizes;
}

Tensor checked_coo(const Tensor& indices,
                   const Tensor& values,
                   IntArrayRef size,
                   MaybeBool is_coalesced) {
  if (checks_sparse_invariants()) {
    check_coo_parts(indices, values, size, is_coalesced.value_or(false));
  }
  return ops::_sparse_coo_tensor_unsafe(indices,
                                        values,
                                        size,
                                        std::nullopt,
                                        std::nullopt,
                                        std::nullopt,
                                        std::nullopt,
                                        is_coalesced);
}

Tensor as_values(const Tensor& t, Dtype dtype, MaybeDevice device) {
  Tensor values = with_options(t, dtype, device);
  return values.dim() == 0 ? ops::expand(values, {1}) : values;
}

}  // namespace

Tensor sparse_coo_of_size(IntArrayRef size,
                          Dtype dtype,
                          MaybeLayout layout,
                          MaybeDevice device,
                          MaybeBool) {
  check_coo_layout(layout);
  return empty_coo(size,
                   static_cast<int64_t>(size.size()),
                   dtype.value_or(default_dtype()),
                   device.value_or(default_device()));
}

Tensor sparse_coo_of_parts(const Tensor& indices,
                           const Tensor& values,
                           Dtype dtype,
                           MaybeLayout layout,
                           MaybeDevice device,
                           MaybeBool,
                           MaybeBool is_coalesced) {
  check_coo_layout(layout);
  TAEDA_CHECK(indices.dim() == 2,
              "indices must be sparse_dim x nnz, but got: ",
              indices.sizes());
  Tensor elements = as_values(values, dtype, device);
  Tensor places = with_options(indices, kLong, device);
  return checked_coo(
      places, elements, inferred_sizes(places, elements), is_coalesced);
}

Tensor sparse_coo_of_parts(const Tensor& indices,
                           const Tensor& values,
                           IntArrayRef size,
                           Dtype dtype,
                           MaybeLayout layout,
                           MaybeDevice device,
                           MaybeBool,
                           MaybeBool is_coalesced) {
  check_coo_layout(layout);
  return checked_coo(with_options(indices, kLong, device),
                     as_values(values, dtype, device),
                     size,
                     is_coalesced);
}

Tensor sparse_coo_unsafe(const Tensor& indices,
                         const Tensor& values,
                         IntArrayRef size,
                         Dtype dtype,
                         MaybeLayout layout,
                         MaybeDevice device,
                         MaybeBool,
                         MaybeBool is_coalesced) {
  check_coo_layout(layout);
  Tensor elements = as_values(values, dtype, device);
  check_coo_sizes(indices, elements, size);
  return make_coo(with_options(indices, kLong, device),
                  elements,
                  size,
                  is_coalesced.value_or(false));
}

// Compressed layouts
// ------------------------------------------------------------

namespace {

Layout compressed_layout(std::string_view op, MaybeLayout layout) {
  TAEDA_CHECK(
      layout, op, " expected sparse compressed tensor layout but got none");
  TAEDA_CHECK(is_compressed(*layout),
              op,
              " expected sparse compressed tensor layout but got ",
              layout_word(*layout));
  return *layout;
}

DimVector inferred_sizes(Layout layout,
                         const Tensor& offsets,
                         const Tensor& indices,
                         const Tensor& values) {
  TAEDA_CHECK(offsets.dim() > 0 && indices.dim() > 0,
              "indices of a compressed tensor must have at least one dim");
  int64_t batch = offsets.dim() - 1;
  int64_t blocks = is_blocked(layout) ? 2 : 0;
  TAEDA_CHECK(values.dim() > batch + blocks,
              "values must have dimensionality > sum of batch and block "
              "dimensionalities (=",
              batch,
              " + ",
              blocks,
              ") but got ",
              values.dim());
  int64_t major = offsets.size(-1) - 1;
  int64_t minor =
      indices.numel() == 0 ? 0 : ops::item(ops::max(indices)).to_int() + 1;
  if (!is_by_rows(layout)) std::swap(major, minor);
  if (blocks != 0) {
    major *= values.size(batch + 1);
    minor *= values.size(batch + 2);
  }
  DimVector sizes(offsets.sizes().begin(), offsets.sizes().end() - 1);
  sizes.push_back(major);
  sizes.push_back(minor);
  for (int64_t s : last_sizes(values, batch + 1 + blocks)) sizes.push_back(s);
  return sizes;
}

Tensor checked_compressed(Layout layout,
                          const Tensor& offsets,
                          const Tensor& indices,
                          const Tensor& values,
                          IntArrayRef size,
                          Dtype dtype,
                          MaybeDevice device) {
  Tensor elements = with_options(values, dtype, device);
  if (checks_sparse_invariants()) {
    check_compressed_parts(offsets, indices, elements, size, layout);
  }
  return ops::_sparse_compressed_tensor_unsafe(
      with_options(offsets, std::nullopt, device),
      with_options(indices, std::nullopt, device),
      elements,
      size,
      std::nullopt,
      layout);
}

}  // namespace

Tensor sparse_compressed_unsafe(const Tensor& offsets,
                                const Tensor& indices,
                                const Tensor& values,
                                IntArrayRef size,
                                Dtype dtype,
                                MaybeLayout layout,
                                MaybeDevice device,
                                MaybeBool) {
  Layout kind = compressed_layout("_sparse_compressed_tensor_unsafe", layout);
  check_compressed_sizes(offsets, indices, values, size, kind);
  return make_compressed(
      kind, offsets, indices, with_options(values, dtype, device), size);
}

Tensor sparse_compressed(const Tensor& offsets,
                         const Tensor& indices,
                         const Tensor& values,
                         IntArrayRef size,
                         Dtype dtype,
                         MaybeLayout layout,
                         MaybeDevice device,
                         MaybeBool) {
  Layout kind = compressed_layout("sparse_compressed_tensor", layout);
  return checked_compressed(
      kind, offsets, indices, values, size, dtype, device);
}
Tensor sparse_compressed(const Tensor& offsets,
                         const Tensor& indices,
                         const Tensor& values,
                         Dtype dtype,
                         MaybeLayout layout,
                         MaybeDevice device,
                         MaybeBool pin_memory) {
  Layout kind = compressed_layout("sparse_compressed_tensor", layout);
  return sparse_compressed(offsets,
                           indices,
                           values,
                           inferred_sizes(kind, offsets, indices, values),
                           dtype,
                           kind,
                           device,
                           pin_memory);
}

// The four constructors of one layout each, with a shape and without.
#define TAEDA_COMPRESSED(name, kind)                                        \
  Tensor name(const Tensor& offsets,                                        \
              const Tensor& indices,                                        \
              const Tensor& values,                                         \
              IntArrayRef size,                                             \
              Dtype dtype,                                                  \
              MaybeLayout layout,                                           \
              MaybeDevice device,                                           \
              MaybeBool) {                                                  \
    TAEDA_CHECK(!layout || *layout == kind,                                 \
                #name "_tensor: expected layout ",                          \
                kind,                                                       \
                ", got ",                                                   \
                layout.value_or(kind));                                     \
    return checked_compressed(                                              \
        kind, offsets, indices, values, size, dtype, device);               \
  }                                                                         \
  Tensor name(const Tensor& offsets,                                        \
              const Tensor& indices,                                        \
              const Tensor& values,                                         \
              Dtype dtype,                                                  \
              MaybeLayout layout,                                           \
              MaybeDevice device,                                           \
              MaybeBool pin_memory) {                                       \
    DimVector size = inferred_sizes(kind, offsets, indices, values);        \
    return name(                                                            \
        offsets, indices, values, size, dtype, layout, device, pin_memory); \
  }
TAEDA_COMPRESSED(sparse_csr, Layout::SparseCsr)
TAEDA_COMPRESSED(sparse_csc, Layout::SparseCsc)
TAEDA_COMPRESSED(sparse_bsr, Layout::SparseBsr)
TAEDA_COMPRESSED(sparse_bsc, Layout::SparseBsc)
#undef TAEDA_COMPRESSED

}  // namespace taeda::native
