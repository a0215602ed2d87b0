#include <taeda/aten/core/tensor_base.h>

#include <taeda/aten/core/stand_in.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/c10/core/program_device.h>
#include <taeda/c10/core/symbolic_geometry.h>

namespace taeda {

int64_t wrap_dim(int64_t d, int64_t rank) {
  int64_t n = std::max<int64_t>(rank, 1);
  TAEDA_CHECK_AS(Index,
                 d >= -n && d < n,
                 "Dimension out of range (expected to be in range of [",
                 -n,
                 ", ",
                 n - 1,
                 "], but got ",
                 d,
                 ")");
  return d < 0 ? d + n : d;
}

SmallVector<int64_t, 5> wrap_dims(IntArrayRef dims, int64_t rank) {
  SmallVector<int64_t, 5> out;
  for (int64_t d : dims) out.push_back(wrap_dim(d, rank));
  return out;
}

namespace {
int64_t checked_dim(int64_t d, int64_t rank) {
  TAEDA_CHECK_AS(Index,
                 rank > 0,
                 "Dimension specified as ",
                 d,
                 " but tensor has no dimensions");
  return wrap_dim(d, rank);
}

std::string_view short_dtype(ScalarType t) {
  switch (t) {
    case kByte:
      return "u8";
    case kChar:
      return "i8";
    case kShort:
      return "i16";
    case kInt:
      return "i32";
    case kLong:
      return "i64";
    case kHalf:
      return "f16";
    case kBFloat16:
      return "bf16";
    case kFloat:
      return "f32";
    case kDouble:
      return "f64";
    case kComplexFloat:
      return "c64";
    case kComplexDouble:
      return "c128";
    default:
      return dtype_name(t);
  }
}
}  // namespace

int64_t TensorBase::size(int64_t d) const {
  size_t at = static_cast<size_t>(checked_dim(d, dim()));
  // Of symbols, this one alone becomes an integer.
  if (TAEDA_UNLIKELY(impl_->is_symbolic()))
    return sym_sizes(*impl_)[at].guard();
  return sizes()[at];
}
int64_t TensorBase::stride(int64_t d) const {
  return strides()[static_cast<size_t>(checked_dim(d, dim()))];
}

bool TensorBase::is_contiguous(MemoryFormat f) const {
  switch (f) {
    case MemoryFormat::ChannelsLast:
      return impl_->is_channels_last();
    case MemoryFormat::ChannelsLast3d:
      return impl_->is_channels_last_3d();
    default:
      return impl_->is_contiguous();
  }
}

MemoryFormat TensorBase::suggest_memory_format() const {
  bool like =
      impl_->is_symbolic()
          ? strides::channels_last_like(sym_sizes(*impl_), sym_strides(*impl_))
          : strides::channels_last_like(sizes(), strides());
  if (!like) return MemoryFormat::Contiguous;
  return dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

void append_to(std::string& out, const TensorBase& t) {
  if (!t.defined()) {
    out.append("undefined");
    return;
  }
  append_tensor_text(out, str_cat(sym_sizes(*t.impl())), t.dtype(), t.device());
}

namespace {
// What is said of tensors on meta.
Device& stands_for() {
  thread_local Device device{DeviceType::Meta};
  return device;
}
}  // namespace

StandInScope::StandInScope(Device device) : before_(stands_for()) {
  stands_for() = device;
}
StandInScope::~StandInScope() { stands_for() = before_; }
Device device_meant_by(Device seen) {
  return seen.is_meta() ? stands_for() : seen;
}

void append_tensor_text(std::string& out,
                        std::string_view sizes,
                        ScalarType dtype,
                        Device device) {
  if (device.is_meta()) device = stands_for();
  out.append(sizes).append(" ").append(short_dtype(dtype));
  if (!device.is_cpu()) {
    out.push_back(' ');
    append_to(out, device);
  }
}

namespace {
TensorBase make(size_t nbytes, ScalarType dtype, Device device) {
  // There is one CPU: what is asked for on "cpu:0" lies beside what is on
  // "cpu".
  if (TAEDA_LIKELY(device.is_cpu())) {
    device.index = -1;
  } else {
    device = with_current_index(device);
  }
  auto storage =
      make_intrusive<StorageImpl>(nbytes, allocator_for(device.type), device);
  auto impl = make_intrusive<TensorImpl>(
      std::move(storage), dtype, backend_key(device.type));
  impl->is_inference = inference_mode();
  return TensorBase(std::move(impl));
}
}  // namespace

TensorBase make_tensor(std::string_view op,
                       IntArrayRef sizes,
                       ScalarType dtype,
                       Device device) {
  size_t numel = static_cast<size_t>(checked_numel(op, sizes));
  TensorBase t = make(numel * element_size(dtype), dtype, device);
  t.impl()->set_sizes_contiguous(sizes);
  return t;
}

TensorBase make_tensor_strided(std::string_view op,
                               IntArrayRef sizes,
                               IntArrayRef strides,
                               ScalarType dtype,
                               Device device) {
  checked_numel(op, sizes);
  for (int64_t s : strides) {
    TAEDA_CHECK(s >= 0, op, ": strides must not be negative, got ", strides);
  }
  size_t bytes = required_bytes(sizes, strides, 0, element_size(dtype));
  TensorBase t = make(bytes, dtype, device);
  t.impl()->set_sizes_and_strides(sizes, strides);
  return t;
}

TensorBase wrap_number(const Scalar& s, Device device) {
  ScalarType t = s.type();
  TensorBase out = make(element_size(t), t, device);
  out.impl()->set_sizes_contiguous({});
  if (device.is_cpu()) {
    s.store(t, out.mutable_raw_data());
  } else {
    fill_with(out, s);
  }
  out.impl()->is_wrapped_number = true;
  return out;
}

TensorBase make_view(const TensorBase& self,
                     IntArrayRef sizes,
                     IntArrayRef strides,
                     int64_t offset) {
  TensorImpl& from = *self.impl();
  DispatchKeySet keys = from.keys() - kKeysLeftBehind;
  auto impl = make_intrusive<TensorImpl>(from.storage(), from.dtype(), keys);
  impl->set_sizes_and_strides(sizes, strides, offset);
  impl->set_version_counter(from.share_version());
  impl->is_inference = from.is_inference;
  bool is_view = static_cast<bool>(from.base());
  // A view of one that may not be written may not be, either.
  ViewCreation how = grad_enabled()     ? from.view_creation()
                     : inference_mode() ? ViewCreation::Inference
                                        : ViewCreation::NoGrad;
  impl->set_base(is_view ? from.base() : self.impl_ptr(), how);
  if (from.extra_or_null() != nullptr && from.extra_or_null()->replay) {
    impl->extra().replay = from.extra_or_null()->replay;
  }
  return TensorBase(std::move(impl));
}

TensorBase make_view_as(const TensorBase& self,
                        ScalarType dtype,
                        IntArrayRef sizes,
                        IntArrayRef strides,
                        int64_t offset,
                        std::shared_ptr<ViewReplay> replay) {
  TensorBase view = make_view(self, {}, {}, 0);
  view.impl()->set_dtype(dtype);
  view.impl()->set_sizes_and_strides(sizes, strides, offset);
  view.impl()->extra().replay = std::move(replay);
  return view;
}

}  // namespace taeda
