#include <taeda/c10/core/strides.h>
#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/c10/core/tensor_impl.h>
#include <taeda/c10/util/check.h>

#include <algorithm>

namespace taeda {

void (*release_python_object)(void*) = nullptr;

TensorImpl::TensorImpl(Storage storage, ScalarType dtype, DispatchKeySet keys)
    : keys_(keys), dtype_(dtype), storage_(std::move(storage)) {}

TensorImpl::~TensorImpl() {
  drop_python_object();
  if (VersionCounter* shared = shared_version()) shared->release();
}

void TensorImpl::drop_python_object() {
  if (owns_python_object_ && release_python_object != nullptr) {
    owns_python_object_ = false;
    release_python_object(std::exchange(python_object_, nullptr));
  }
}

void TensorImpl::release_resources() {
  drop_python_object();
  autograd_meta_.reset();
  storage_.reset();
  base_.reset();
  extra_.reset();
}

TensorExtra& TensorImpl::extra() {
  if (!extra_) extra_ = std::make_unique<TensorExtra>();
  return *extra_;
}

IntrusivePtr<VersionCounter> TensorImpl::share_version() {
  VersionCounter* shared = shared_version();
  if (shared == nullptr) {
    auto fresh = make_intrusive<VersionCounter>(version_);
    if (shared_version_.compare_exchange_strong(
            shared, fresh.get(), std::memory_order_acq_rel)) {
      shared = fresh.detach();
    }
  }
  return IntrusivePtr<VersionCounter>::share(shared);
}

void TensorImpl::set_dim(size_t dim) {
  if (TAEDA_UNLIKELY(is_symbolic())) {
    extra_->symbolic.reset();
    remove_key(DispatchKey::Symbolic);
    remove_key(DispatchKey::SymbolicGrad);
  }
  if (dim > kInlineDims) {
    if (static_cast<size_t>(dim_) != dim || !heap_) {
      heap_ = std::make_unique<int64_t[]>(2 * dim);
    }
  } else {
    heap_.reset();
  }
  dim_ = static_cast<int32_t>(dim);
}

void TensorImpl::set_sizes_contiguous(IntArrayRef sizes) {
  // `sizes` may be this tensor's own; copy before the buffer changes.
  DimVector copy(sizes.begin(), sizes.end());
  set_dim(copy.size());
  int64_t* size = sizes_ptr();
  int64_t* stride = strides_ptr();
  int64_t running = 1;
  numel_ = 1;
  for (int i = dim_ - 1; i >= 0; --i) {
    size[i] = copy[i];
    stride[i] = running;
    running *= std::max<int64_t>(copy[i], 1);
    numel_ *= copy[i];
  }
  contiguous_ = dense_ = true;
  channels_last_ = channels_last_3d_ = false;
  if (dim_ == 4 || dim_ == 5) refresh_facts();
}

namespace {
// Expanded sizes may multiply to more than any memory holds.
int64_t product(IntArrayRef sizes) {
  int64_t numel = 1;
  bool overflow = false;
  for (int64_t s : sizes) {
    if (s == 0) return 0;
    overflow |= __builtin_mul_overflow(numel, s, &numel);
  }
  TAEDA_CHECK(
      !overflow, "numel: integer multiplication overflow for sizes ", sizes);
  return numel;
}
}  // namespace

void TensorImpl::check_memory() const {
  size_t need = required_bytes(sizes(), strides(), storage_offset_, itemsize());
  if (need == 0) return;
  TAEDA_CHECK_AS(NotImplemented,
                 !device().is_meta(),
                 "Cannot access the data of a meta tensor: it has none (shape ",
                 sizes(),
                 ")");
  TAEDA_CHECK(layout_ == Layout::Strided,
              "Cannot access data pointer of Tensor that doesn't have storage: "
              "its layout is ",
              layout_,
              " (shape ",
              sizes(),
              ")");
  TAEDA_CHECK(!keys().has(DispatchKey::Wrapped),
              "Cannot access data pointer of Tensor that doesn't have storage: "
              "it is a value of a function transform (shape ",
              sizes(),
              ")");
  TAEDA_CHECK(need <= storage_->nbytes(),
              "The tensor has a non-zero number of elements, but its data is "
              "not allocated: shape ",
              sizes(),
              " needs ",
              need,
              " bytes, and its storage was resized to ",
              storage_->nbytes());
}

void TensorImpl::set_sizes_and_strides(IntArrayRef sizes, IntArrayRef strides) {
  DimVector size_copy(sizes.begin(), sizes.end());
  DimVector stride_copy(strides.begin(), strides.end());
  int64_t numel = product(size_copy);
  set_dim(size_copy.size());
  std::copy(size_copy.begin(), size_copy.end(), sizes_ptr());
  std::copy(stride_copy.begin(), stride_copy.end(), strides_ptr());
  numel_ = numel;
  refresh_facts();
}

void TensorImpl::refresh_facts() {
  IntArrayRef size = sizes(), stride = strides();
  channels_last_ = channels_last_3d_ = false;
  if (numel_ == 0) {
    contiguous_ = dense_ = true;
    return;
  }
  contiguous_ = true;
  int64_t expected = 1;
  for (int i = dim_ - 1; i >= 0 && contiguous_; --i) {
    if (size[i] == 1) continue;
    contiguous_ = stride[i] == expected;
    expected *= size[i];
  }
  if (dim_ == 4) {
    channels_last_ =
        strides::dense_in_order<int64_t>(size, stride, kChannelsLast);
  } else if (dim_ == 5) {
    channels_last_3d_ =
        strides::dense_in_order<int64_t>(size, stride, kChannelsLast3d);
  }
  dense_ = contiguous_ || channels_last_ || channels_last_3d_ ||
           strides::dense(size, stride);
}

IntrusivePtr<TensorImpl> TensorImpl::shallow_copy(bool share) {
  DispatchKeySet keys = keys_ - kKeysLeftBehind;
  auto copy = make_intrusive<TensorImpl>(storage_, dtype_, keys);
  if (TAEDA_UNLIKELY(is_symbolic())) {
    copy->set_symbolic(extra_->symbolic);
  } else {
    copy->set_sizes_and_strides(sizes(), strides(), storage_offset_);
  }
  copy->layout_ = layout_;
  copy->is_inference = is_inference;
  copy->is_wrapped_number = is_wrapped_number;
  if (extra_ && extra_->wrapped) copy->extra().wrapped = extra_->wrapped;
  if (share) copy->set_version_counter(share_version());
  return copy;
}

void TensorImpl::shallow_copy_from(const TensorImpl& other) {
  DispatchKeySet own = keys() & kKeysLeftBehind;
  storage_ = other.storage_;
  dtype_ = other.dtype_;
  layout_ = other.layout_;
  if (layout_ != Layout::Strided && other.extra_) {
    extra().wrapped = other.extra_->wrapped;  // Note [Sparse tensors]
  }
  keys_ = (other.keys_ - kKeysLeftBehind) | own;
  if (TAEDA_UNLIKELY(other.is_symbolic())) {
    set_symbolic(other.extra_->symbolic);
  } else {
    set_sizes_and_strides(
        other.sizes(), other.strides(), other.storage_offset_);
  }
}

int64_t checked_numel(std::string_view op, IntArrayRef sizes) {
  int64_t numel = 1;
  bool overflow = false;
  for (int64_t s : sizes) {
    TAEDA_CHECK(s >= 0,
                op,
                ": Trying to create tensor with negative dimension ",
                s,
                ": ",
                sizes);
    overflow |= __builtin_mul_overflow(numel, std::max<int64_t>(s, 1), &numel);
  }
  // An element may take 16 bytes; the byte count must fit as well.
  overflow |= numel > (int64_t{1} << 59);
  TAEDA_CHECK(!overflow,
              op,
              ": Storage size calculation overflowed with sizes=",
              sizes);
  for (int64_t s : sizes) {
    if (s == 0) return 0;
  }
  return numel;
}

size_t required_bytes(IntArrayRef sizes,
                      IntArrayRef strides,
                      int64_t offset,
                      size_t itemsize) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach = 0;
    bool overflow = __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
                    __builtin_add_overflow(last, reach, &last);
    TAEDA_CHECK(!overflow && last < (int64_t{1} << 59),
                "Storage size calculation overflowed with sizes=",
                sizes,
                " and strides=",
                strides);
  }
  return static_cast<size_t>(last + 1) * itemsize;
}

}  // namespace taeda
