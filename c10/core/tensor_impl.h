// The tensor's record: geometry, storage, type, keys, view relation, version.
#pragma once

#include <taeda/c10/core/dispatch_key.h>
#include <taeda/c10/core/layout.h>
#include <taeda/c10/core/scalar_type.h>
#include <taeda/c10/core/storage.h>
#include <taeda/c10/util/small_vector.h>

#include <memory>

namespace taeda {

class TensorImpl;

// What autograd keeps with a tensor; csrc/autograd defines it.
class TAEDA_API AutogradMetaBase {
 public:
  virtual ~AutogradMetaBase() = default;
};

// Shared by a tensor, its views and its detached aliases.
class VersionCounter final : public IntrusiveTarget {
 public:
  explicit VersionCounter(uint32_t v) : value(v) {}
  std::atomic<uint32_t> value;
};

// How a view came to be, which decides what an in-place change of it may do.
enum class ViewCreation : uint8_t {
  Default,
  NoGrad,          // made under no_grad
  MultiOutput,     // one of several outputs of one call (unbind, split, chunk)
  CustomFunction,  // returned by a Python autograd Function
  Inference,
};

// Remakes a view from (another value of) its base, for views that as_strided
// cannot express: those that change the dtype.
struct ViewReplay {
  virtual ~ViewReplay() = default;
  virtual IntrusivePtr<TensorImpl> replay(
      const IntrusivePtr<TensorImpl>& base) const = 0;
};

// What few tensors have.
struct TensorExtra {
  std::shared_ptr<ViewReplay> replay;
  // SymbolicGeometry where the sizes are not all integers.
  IntrusivePtr<IntrusiveTarget> symbolic;
  // Of a wrapper: the level and the value inside (aten/core/level.h).
  IntrusivePtr<IntrusiveTarget> wrapped;
  // Tangents by level of forward mode.
  IntrusivePtr<IntrusiveTarget> tangents;
};

// What views and copies of a tensor do not take over: its history, and the
// Python class that answers for it.
inline constexpr DispatchKeySet kKeysLeftBehind{DispatchKey::Autograd,
                                                DispatchKey::Python};

// Note [Inline geometry]
// Sizes and strides live inside the object up to five dimensions, in one buffer
// (sizes first, then strides at kInlineDims), so that neither a view nor a
// fresh result allocates anything besides the object.
inline constexpr int kInlineDims = 5;

// Note [Symbolic geometry]
// A tensor whose sizes are symbols (c10/core/symbolic_geometry.h) keeps hints
// where others keep their sizes, always outside the object, and a negative
// number of elements: so who reads integers comes to a slow path that fixes the
// symbols to their hints, which is a guard, and others pay nothing for it.

class TAEDA_API TensorImpl : public IntrusiveTarget {
 public:
  TensorImpl(Storage storage, ScalarType dtype, DispatchKeySet keys);
  ~TensorImpl() override;

  int64_t dim() const { return dim_; }
  int64_t numel() const {
    return TAEDA_LIKELY(numel_ >= 0) ? numel_ : fixed_numel();
  }
  IntArrayRef sizes() const { return {sizes_ptr(), static_cast<size_t>(dim_)}; }
  IntArrayRef strides() const {
    return {strides_ptr(), static_cast<size_t>(dim_)};
  }
  int64_t storage_offset() const { return storage_offset_; }
  // See Note [Symbolic geometry]; the rest of such a tensor is as always.
  bool is_symbolic() const { return numel_ < 0; }
  void set_symbolic(IntrusivePtr<IntrusiveTarget> geometry);
  // The sizes, or their hints: for what decides nothing.
  IntArrayRef hinted_sizes() const {
    return {heap_ ? heap_.get() : inline_, static_cast<size_t>(dim_)};
  }

  bool is_contiguous() const { return contiguous_; }
  bool is_channels_last() const { return channels_last_; }
  bool is_channels_last_3d() const { return channels_last_3d_; }
  bool is_non_overlapping_and_dense() const { return dense_; }

  // Row-major geometry; the quickest setter.
  void set_sizes_contiguous(IntArrayRef sizes);
  void set_sizes_and_strides(IntArrayRef sizes, IntArrayRef strides);
  void set_sizes_and_strides(IntArrayRef sizes,
                             IntArrayRef strides,
                             int64_t offset) {
    set_sizes_and_strides(sizes, strides);
    storage_offset_ = offset;
  }
  void set_storage_offset(int64_t offset) { storage_offset_ = offset; }

  ScalarType dtype() const { return dtype_; }
  void set_dtype(ScalarType t) { dtype_ = t; }
  size_t itemsize() const { return element_size(dtype_); }
  Device device() const { return storage_ ? storage_->device() : Device(); }
  Layout layout() const { return layout_; }
  const Storage& storage() const { return storage_; }
  void set_storage(Storage s) { storage_ = std::move(s); }
  // Element [0, ..., 0]; null when the storage is empty or has no memory.
  const void* data() const {
    if (TAEDA_UNLIKELY(storage_->has_shrunk())) check_memory();
    return offset_pointer(storage_->data());
  }
  void* mutable_data() {
    if (TAEDA_UNLIKELY(storage_->has_shrunk())) check_memory();
    return offset_pointer(storage_->mutable_data());
  }
  // The address alone, even where the storage became too small to be read.
  void* address() { return offset_pointer(storage_->mutable_data()); }

  // A view requires grad as soon as its base does: an in-place change through
  // another view may have brought that about.
  DispatchKeySet keys() const {
    if (!base_) return keys_;
    return keys_ | (base_->keys_ & DispatchKeySet(DispatchKey::Autograd));
  }
  void set_keys(DispatchKeySet k) { keys_ = k; }
  void add_key(DispatchKey k) { keys_ = keys_ | k; }
  void remove_key(DispatchKey k) { keys_ = keys_ - DispatchKeySet(k); }
  // Autograd is in the key set exactly when the tensor requires grad, as a leaf
  // or through its grad_fn.
  bool requires_grad() const { return keys().has(DispatchKey::Autograd); }

  AutogradMetaBase* autograd_meta() const { return autograd_meta_.get(); }
  void set_autograd_meta(std::unique_ptr<AutogradMetaBase> m) {
    autograd_meta_ = std::move(m);
  }

  // Note [Versions]
  // Every in-place change counts. The count is a plain member until something
  // shares it (a view, a detached alias, a saved output); then it moves to a
  // counter of its own, which they all hold.
  // Threads may make views of one tensor at the same time: the first of them
  // sets the pointer.
  uint32_t version() const {
    const VersionCounter* shared = shared_version();
    return shared != nullptr ? shared->value.load(std::memory_order_relaxed)
                             : version_;
  }
  void bump_version() {
    if (VersionCounter* shared = shared_version()) {
      shared->value.fetch_add(1, std::memory_order_relaxed);
    } else {
      ++version_;
    }
  }
  IntrusivePtr<VersionCounter> share_version();
  void set_version_counter(IntrusivePtr<VersionCounter> c) {
    VersionCounter* old =
        shared_version_.exchange(c.detach(), std::memory_order_acq_rel);
    if (old != nullptr) old->release();
  }

  // The tensor that this one is a view of, never itself a view; null if none.
  const IntrusivePtr<TensorImpl>& base() const { return base_; }
  void set_base(IntrusivePtr<TensorImpl> base, ViewCreation how) {
    base_ = std::move(base);
    view_creation_ = how;
  }
  ViewCreation view_creation() const { return view_creation_; }
  void set_view_creation(ViewCreation how) { view_creation_ = how; }

  TensorExtra& extra();
  const TensorExtra* extra_or_null() const { return extra_.get(); }

  // A tensor over the same storage with the same geometry, no autograd history,
  // no base; it shares the version counter when asked to.
  IntrusivePtr<TensorImpl> shallow_copy(bool share_version);
  // Takes over the other's storage, geometry and dtype (`x.data = y`).
  void shallow_copy_from(const TensorImpl& other);

  // 0-d tensors made of Python numbers take part in promotion like numbers.
  bool is_wrapped_number = false;
  bool is_inference = false;

  // The Python object, and whether this object keeps that one alive.
  void* python_object() const { return python_object_; }
  bool owns_python_object() const { return owns_python_object_; }
  void set_python_object(void* object, bool owns) {
    python_object_ = object;
    owns_python_object_ = owns;
  }

 protected:
  void release_resources() override;

  DispatchKeySet keys_;
  Layout layout_ = Layout::Strided;

 private:
  const int64_t* sizes_ptr() const {
    return TAEDA_LIKELY(!heap_) ? inline_ : fixed_geometry();
  }
  const int64_t* strides_ptr() const {
    return TAEDA_LIKELY(!heap_) ? inline_ + kInlineDims
                                : fixed_geometry() + dim_;
  }
  int64_t* sizes_ptr() { return heap_ ? heap_.get() : inline_; }
  int64_t* strides_ptr() {
    return heap_ ? heap_.get() + dim_ : inline_ + kInlineDims;
  }
  void* offset_pointer(const void* p) const {
    if (p == nullptr) return nullptr;
    return const_cast<char*>(static_cast<const char*>(p)) +
           storage_offset_ * static_cast<int64_t>(itemsize());
  }
  VersionCounter* shared_version() const {
    return shared_version_.load(std::memory_order_acquire);
  }
  const int64_t* fixed_geometry() const;
  int64_t fixed_numel() const;
  void set_dim(size_t dim);
  void refresh_facts();
  void drop_python_object();
  void check_memory() const;

  ScalarType dtype_;
  bool contiguous_ = true;
  bool channels_last_ = false;
  bool channels_last_3d_ = false;
  bool dense_ = true;
  bool owns_python_object_ = false;
  ViewCreation view_creation_ = ViewCreation::Default;
  uint32_t version_ = 0;
  int32_t dim_ = 1;
  int64_t numel_ = 0;
  int64_t storage_offset_ = 0;
  int64_t inline_[2 * kInlineDims] = {0, 0, 0, 0, 0, 1};
  std::unique_ptr<int64_t[]> heap_;  // sizes, then strides, above kInlineDims
  Storage storage_;
  std::atomic<VersionCounter*> shared_version_{nullptr};  // owned
  IntrusivePtr<TensorImpl> base_;
  std::unique_ptr<AutogradMetaBase> autograd_meta_;
  std::unique_ptr<TensorExtra> extra_;
  void* python_object_ = nullptr;
};

// Set by the bindings: gives up the Python object of a dying tensor.
extern TAEDA_API void (*release_python_object)(void* object);

// Row-major strides of `sizes`.
TAEDA_API DimVector contiguous_strides(IntArrayRef sizes);
// Strides of the given memory format; the rank must fit the format.
TAEDA_API DimVector format_strides(IntArrayRef sizes, MemoryFormat format);
// The product, with a check for negative sizes and overflow.
TAEDA_API int64_t checked_numel(std::string_view op, IntArrayRef sizes);
// Bytes that a storage needs to hold this geometry.
TAEDA_API size_t required_bytes(IntArrayRef sizes,
                                IntArrayRef strides,
                                int64_t offset,
                                size_t itemsize);

}  // namespace taeda
