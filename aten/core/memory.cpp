#include <taeda/aten/core/memory.h>
#include <taeda/c10/core/kept_forms.h>
#include <taeda/c10/util/format.h>

namespace taeda {

TensorBase over_memory(DataPtr memory,
                       size_t bytes,
                       ScalarType dtype,
                       IntArrayRef sizes,
                       IntArrayRef strides,
                       Device device) {
  auto storage = make_intrusive<StorageImpl>(std::move(memory), bytes, device);
  auto impl = make_intrusive<TensorImpl>(
      std::move(storage), dtype, backend_key(device.type));
  impl->set_sizes_and_strides(sizes, strides);
  return TensorBase(std::move(impl));
}

void set_storage(const TensorBase& t,
                 const Storage& s,
                 int64_t offset,
                 IntArrayRef sizes,
                 IntArrayRef strides) {
  TAEDA_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  TAEDA_CHECK(sizes.size() == strides.size(),
              message("mismatch in length of strides and shape: {} and {}",
                      strides,
                      sizes));
  checked_numel("set_", sizes);
  for (int64_t stride : strides) {
    TAEDA_CHECK(stride >= 0, "set_: negative stride in ", strides);
  }
  size_t need = required_bytes(sizes, strides, offset, t.itemsize());
  if (need > s->nbytes()) {
    TAEDA_CHECK(s->resizable(),
                message("setStorage: sizes {}, strides {}, storage offset {}, "
                        "and itemsize {} requiring a storage size of {} are "
                        "out of bounds for storage of size {}",
                        sizes,
                        strides,
                        offset,
                        t.itemsize(),
                        need,
                        s->nbytes()));
    s->resize(need);
  }
  TensorImpl& impl = *t.impl();
  impl.set_storage(s);
  impl.set_sizes_and_strides(sizes, strides, offset);
  impl.bump_version();
}

namespace dlpack {

namespace {
// Type codes of dlpack.h; the 8-bit floats have one each.
enum Code : uint8_t {
  kIntCode = 0,
  kUIntCode = 1,
  kFloatCode = 2,
  kBfloatCode = 4,
  kComplexCode = 5,
  kBoolCode = 6,
};
constexpr std::pair<ScalarType, uint8_t> kFloat8Codes[] = {
    {ScalarType::Float8_e4m3fn, 10},
    {ScalarType::Float8_e4m3fnuz, 11},
    {ScalarType::Float8_e5m2, 12},
    {ScalarType::Float8_e5m2fnuz, 13},
    {ScalarType::Float8_e8m0fnu, 14},
};

uint8_t code_of(ScalarType t) {
  if (t == kBool) return kBoolCode;
  if (t == kBFloat16) return kBfloatCode;
  for (const auto& [type, code] : kFloat8Codes) {
    if (type == t) return code;
  }
  if (is_complex(t)) return kComplexCode;
  if (is_floating(t)) return kFloatCode;
  return is_signed(t) ? kIntCode : kUIntCode;
}

ScalarType type_of(DLDataType d) {
  TAEDA_CHECK_AS(Value, d.lanes == 1, "DLPack: only one lane is supported");
  for (int i = 0; i < kNumScalarTypes; ++i) {
    auto t = static_cast<ScalarType>(i);
    if (element_size(t) * 8 == d.bits && code_of(t) == d.code) return t;
  }
  throw_error(
      ErrorKind::Value,
      message("DLPack: unsupported type code {} with {} bits", d.code, d.bits));
}

// What an exported structure keeps alive, with its shape and strides.
template <class Managed>
struct Exported {
  Managed managed{};
  TensorBase tensor;
  std::vector<int64_t> geometry;
};

template <class Managed>
void delete_exported(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->context);
}

}  // namespace

template <class Managed>
Managed* from_tensor(const TensorBase& t) {
  auto* out = new Exported<Managed>;
  out->tensor = t;
  out->geometry = t.sizes().vec();
  for (int64_t i = 0; i < t.dim(); ++i) {
    // Dims of size 1 get the row-major stride, which some consumers insist on.
    bool free = t.sizes()[i] <= 1;
    int64_t inner = 1;
    for (int64_t k = i + 1; free && k < t.dim(); ++k) inner *= t.sizes()[k];
    out->geometry.push_back(free ? inner : t.strides()[i]);
  }
  DLTensor& d = out->managed.tensor;
  if (t.storage()) show_memory(*t.storage());
  d.data = t.mutable_raw_data();
  d.device = {1, 0};
  d.ndim = static_cast<int32_t>(t.dim());
  d.dtype = {code_of(t.dtype()), static_cast<uint8_t>(t.itemsize() * 8), 1};
  d.shape = out->geometry.data();
  d.strides = out->geometry.data() + t.dim();
  d.byte_offset = 0;
  out->managed.context = out;
  out->managed.deleter = delete_exported<Managed>;
  return &out->managed;
}
template TAEDA_API DLManagedTensor* from_tensor(const TensorBase& t);
template TAEDA_API DLManagedTensorVersioned* from_tensor(const TensorBase& t);

TensorBase to_tensor(const DLTensor& d,
                     void* managed,
                     void (*release)(void* managed, size_t)) {
  TAEDA_CHECK_AS(Value,
                 d.device.type == 1,
                 "DLPack: unsupported device type ",
                 d.device.type);
  ScalarType dtype = type_of(d.dtype);
  auto rank = static_cast<size_t>(d.ndim);
  IntArrayRef sizes(d.shape, rank);
  DimVector strides = d.strides != nullptr
                          ? DimVector(IntArrayRef(d.strides, rank))
                          : contiguous_strides(sizes);
  checked_numel("from_dlpack", sizes);
  size_t bytes = required_bytes(sizes, strides, 0, element_size(dtype));
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  return over_memory(
      DataPtr{data, managed, release}, bytes, dtype, sizes, strides);
}
}  // namespace dlpack

}  // namespace taeda
