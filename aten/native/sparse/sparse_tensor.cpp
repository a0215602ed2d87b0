#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/aten/native/sparse/sparse_tensor.h>
#include <taeda/gen/ops/empty.h>
#include <taeda/gen/ops/to.h>

#include <array>
#include <atomic>

namespace taeda::native {

namespace {

// The layout is the only thing that outsiders may not set.
class SparseImpl final : public TensorImpl {
 public:
  SparseImpl(Storage storage, ScalarType dtype, DispatchKey key, Layout layout)
      : TensorImpl(std::move(storage), dtype, key) {
    layout_ = layout;
  }
};

DispatchKey sparse_key(Device device) {
  TAEDA_CHECK_AS(NotImplemented,
                 device.is_cpu() || device.is_cuda() || device.is_meta(),
                 "sparse tensors on device ",
                 device,
                 " are not implemented");
  // Kernels call operators on the parts, which may lie on meta.
  return device.is_cuda() ? DispatchKey::SparseCUDA : DispatchKey::SparseCPU;
}

Tensor without_history(const Tensor& t) {
  if (!t.defined()) return t;
  return Tensor(t.impl()->shallow_copy(/*share_version=*/true));
}

Tensor make_sparse(Layout layout,
                   const Tensor& offsets,
                   const Tensor& indices,
                   const Tensor& values,
                   IntArrayRef sizes,
                   bool coalesced) {
  register_sparse_kernels();
  checked_numel("sparse tensor", sizes);
  auto parts = make_intrusive<SparseParts>();
  parts->offsets = without_history(offsets);
  parts->indices = without_history(indices);
  parts->values = without_history(values);
  parts->coalesced = coalesced;
  // A storage whose bytes were taken away: it has the device, and an access to
  // its memory is an error.
  Tensor bytes = make_tensor("sparse tensor", {1}, kByte, values.device());
  bytes.storage()->resize(0);
  auto impl = make_intrusive<SparseImpl>(
      bytes.storage(), values.dtype(), sparse_key(values.device()), layout);
  impl->set_sizes_contiguous(sizes);
  impl->extra().wrapped = std::move(parts);
  return Tensor(std::move(impl));
}

std::atomic<bool> check_invariants{false};

}  // namespace

std::string_view layout_word(Layout l) {
  constexpr std::string_view words[] = {"Strided",
                                        "Sparse",
                                        "SparseCsr",
                                        "Mkldnn",
                                        "SparseCsc",
                                        "SparseBsr",
                                        "SparseBsc",
                                        "Jagged"};
  return words[static_cast<int>(l)];
}

const SparseParts& parts_of(const Tensor& t) {
  TAEDA_INTERNAL_ASSERT(is_sparse(t), "a sparse tensor is expected, got ", t);
  return *static_cast<const SparseParts*>(
      t.impl()->extra_or_null()->wrapped.get());
}

Tensor make_coo(const Tensor& indices,
                const Tensor& values,
                IntArrayRef sizes,
                bool coalesced) {
  // One entry alone is in order.
  bool ordered = coalesced || values.size(0) < 2;
  return make_sparse(Layout::Sparse, Tensor(), indices, values, sizes, ordered);
}

Tensor make_compressed(Layout layout,
                       const Tensor& offsets,
                       const Tensor& indices,
                       const Tensor& values,
                       IntArrayRef sizes) {
  return make_sparse(
      layout, offsets, indices, values, sizes, /*coalesced=*/false);
}

Tensor with_values(const Tensor& self, const Tensor& values) {
  const SparseParts& p = parts_of(self);
  return make_sparse(
      self.layout(), p.offsets, p.indices, values, self.sizes(), p.coalesced);
}

Tensor with_order(const Tensor& self, bool coalesced) {
  const SparseParts& p = parts_of(self);
  return make_sparse(
      self.layout(), p.offsets, p.indices, p.values, self.sizes(), coalesced);
}

Tensor empty_coo(IntArrayRef sizes,
                 int64_t sparse_dims,
                 ScalarType dtype,
                 Device device) {
  DimVector shape(sizes.begin() + sparse_dims, sizes.end());
  shape.insert(shape.begin(), 0);
  Tensor indices = ops::empty({sparse_dims, 0}, kLong, std::nullopt, device);
  Tensor values = ops::empty(shape, dtype, std::nullopt, device);
  return make_coo(indices, values, sizes, /*coalesced=*/true);
}

void set_parts(const Tensor& self, const Tensor& from) {
  TAEDA_CHECK(self.layout() == from.layout(),
              "a sparse tensor of layout ",
              self.layout(),
              " cannot become one of layout ",
              from.layout());
  Tensor other = from;
  if (self.dtype() != from.dtype()) {
    other = with_values(from, ops::to(parts_of(from).values, self.dtype()));
  }
  TensorImpl& impl = *self.impl();
  impl.extra().wrapped = other.impl()->extra().wrapped;
  impl.set_sizes_contiguous(other.sizes());
  impl.bump_version();
}

int64_t batch_dims(const Tensor& t) {
  return is_coo(t) ? 0 : parts_of(t).offsets.dim() - 1;
}

int64_t sparse_dims(const Tensor& t) {
  if (is_coo(t)) return parts_of(t).indices.size(0);
  return is_sparse(t) ? 2 : 0;
}

int64_t dense_dims(const Tensor& t) {
  if (!is_sparse(t)) return t.dim();
  return t.dim() - batch_dims(t) - sparse_dims(t);
}

std::array<int64_t, 2> block_of(const Tensor& t) {
  if (!is_blocked(t.layout())) return {1, 1};
  const Tensor& values = parts_of(t).values;
  int64_t at = batch_dims(t) + 1;
  return {values.size(at), values.size(at + 1)};
}

bool checks_sparse_invariants() {
  return check_invariants.load(std::memory_order_relaxed);
}
void set_checks_sparse_invariants(bool on) {
  check_invariants.store(on, std::memory_order_relaxed);
}

}  // namespace taeda::native
