// The handle of a tensor without operator methods: what kernels, autograd and
// the dispatcher use. taeda::Tensor of <taeda/taeda.h> adds the methods.
#pragma once

#include <taeda/c10/core/local_state.h>
#include <taeda/c10/core/scalar.h>
#include <taeda/c10/core/tensor_impl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace taeda {

class TAEDA_API TensorBase {
 public:
  TensorBase() = default;
  explicit TensorBase(IntrusivePtr<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const IntrusivePtr<TensorImpl>& impl_ptr() const { return impl_; }
  TensorImpl* release() { return impl_.detach(); }
  void reset() { impl_.reset(); }
  bool is_same(const TensorBase& o) const { return impl_ == o.impl_; }

  int64_t dim() const { return impl_->dim(); }
  int64_t numel() const { return impl_->numel(); }
  IntArrayRef sizes() const { return impl_->sizes(); }
  IntArrayRef strides() const { return impl_->strides(); }
  // Negative dims count from the end; IndexError outside the range.
  int64_t size(int64_t d) const;
  int64_t stride(int64_t d) const;
  int64_t storage_offset() const { return impl_->storage_offset(); }
  bool is_contiguous(MemoryFormat f = MemoryFormat::Contiguous) const;
  bool is_non_overlapping_and_dense() const {
    return impl_->is_non_overlapping_and_dense();
  }
  MemoryFormat suggest_memory_format() const;

  ScalarType dtype() const { return impl_->dtype(); }
  ScalarType scalar_type() const { return impl_->dtype(); }
  size_t itemsize() const { return impl_->itemsize(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
  Device device() const { return impl_->device(); }
  Layout layout() const { return impl_->layout(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_floating_point() const { return is_floating(dtype()); }
  bool is_complex() const { return taeda::is_complex(dtype()); }
  bool is_conj() const { return keys().has(DispatchKey::Conjugate); }
  bool is_neg() const { return keys().has(DispatchKey::Negative); }
  DispatchKeySet keys() const { return impl_->keys(); }
  bool requires_grad() const { return impl_->requires_grad(); }
  bool is_view() const { return static_cast<bool>(impl_->base()); }
  uint32_t version() const { return impl_->version(); }

  const Storage& storage() const { return impl_->storage(); }
  // Typed access; no check of the dtype beyond a debug assertion.
  template <class T>
  const T* const_data() const {
    return static_cast<const T*>(impl_->data());
  }
  template <class T>
  T* mutable_data() const {
    return static_cast<T*>(impl_->mutable_data());
  }
  const void* const_raw_data() const { return impl_->data(); }
  void* mutable_raw_data() const { return impl_->mutable_data(); }

 private:
  IntrusivePtr<TensorImpl> impl_;
};

using OptionalTensor = std::optional<TensorBase>;
using TensorBaseList = ArrayRef<TensorBase>;

// "[3, 5] f32": how error messages show an operand.
TAEDA_API void append_to(std::string& out, const TensorBase& t);
TAEDA_API void append_tensor_text(std::string& out,
                                  std::string_view sizes,
                                  ScalarType dtype,
                                  Device device);

// The short names that everything below the user's API is written in.
#define TAEDA_INTERNAL_NAMES          \
  using Tensor = ::taeda::TensorBase; \
  using TensorList = ::taeda::TensorBaseList;
namespace native {
TAEDA_INTERNAL_NAMES
}
namespace autograd {
TAEDA_INTERNAL_NAMES
}
namespace ops {
TAEDA_INTERNAL_NAMES
}
namespace python {
TAEDA_INTERNAL_NAMES
}

// New tensors -----------------------------------------------------------------

// Uninitialised memory on `device`. The sizes are checked.
TAEDA_API TensorBase make_tensor(std::string_view op,
                                 IntArrayRef sizes,
                                 ScalarType dtype,
                                 Device device = DeviceType::CPU);
TAEDA_API TensorBase make_tensor_strided(std::string_view op,
                                         IntArrayRef sizes,
                                         IntArrayRef strides,
                                         ScalarType dtype,
                                         Device device = DeviceType::CPU);
// A 0-d tensor holding a Python number, marked to promote like a number.
TAEDA_API TensorBase wrap_number(const Scalar& s,
                                 Device device = DeviceType::CPU);
// A view of self's storage: shares the version, remembers the base.
TAEDA_API TensorBase make_view(const TensorBase& self,
                               IntArrayRef sizes,
                               IntArrayRef strides,
                               int64_t offset);
// The same, with another dtype (view.dtype, view_as_real, ...); `replay`
// remakes the view from its base.
TAEDA_API TensorBase make_view_as(const TensorBase& self,
                                  ScalarType dtype,
                                  IntArrayRef sizes,
                                  IntArrayRef strides,
                                  int64_t offset,
                                  std::shared_ptr<ViewReplay> replay);

// Dims ------------------------------------------------------------------------

// d or d + rank, within the rank (a 0-d tensor accepts 0 and -1). IndexError
// "Dimension out of range (expected to be in range of [-2, 1], but got 2)".
TAEDA_API int64_t wrap_dim(int64_t d, int64_t rank);
TAEDA_API SmallVector<int64_t, 5> wrap_dims(IntArrayRef dims, int64_t rank);

// Shape rules are templates over the integer type; this is the most used one.
template <class Int>
SmallVector<Int, 5> broadcast_shapes(std::string_view op,
                                     ArrayRef<Int> a,
                                     ArrayRef<Int> b) {
  size_t rank = std::max(a.size(), b.size());
  SmallVector<Int, 5> out(rank);
  // From the last dim on: of several that do not fit, the last one is named.
  for (size_t from_end = 1; from_end <= rank; ++from_end) {
    size_t i = rank - from_end;
    Int x = from_end <= a.size() ? a[a.size() - from_end] : Int(1);
    Int y = from_end <= b.size() ? b[b.size() - from_end] : Int(1);
    TAEDA_CHECK(x == y || x == 1 || y == 1,
                op,
                ": The size of tensor a (",
                x,
                ") must match the size of tensor b (",
                y,
                ") at non-singleton dimension ",
                i,
                " (a: ",
                a,
                ", b: ",
                b,
                ")");
    out[i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace taeda
