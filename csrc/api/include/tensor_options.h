// What a new tensor is like: dtype, layout, device, and whether it requires
// gradients. Calls are those of PyTorch's C++ front end.
#pragma once

#include <taeda/aten/core/tensor_base.h>

#include <optional>

namespace taeda {

// Names for devices in calls, and another for each dtype, as PyTorch has them.
inline constexpr DeviceType kCPU = DeviceType::CPU;
inline constexpr DeviceType kCUDA = DeviceType::CUDA;
inline constexpr DeviceType kMeta = DeviceType::Meta;
inline constexpr Layout kStrided = Layout::Strided;
inline constexpr ScalarType kUInt8 = kByte;
inline constexpr ScalarType kInt8 = kChar;
inline constexpr ScalarType kInt16 = kShort;
inline constexpr ScalarType kInt32 = kInt;
inline constexpr ScalarType kInt64 = kLong;
inline constexpr ScalarType kFloat16 = kHalf;
inline constexpr ScalarType kFloat32 = kFloat;
inline constexpr ScalarType kFloat64 = kDouble;

// What belongs to the front end alone: PyTorch's interface of values that the
// library itself reads as plain members.
namespace front {
class Device : public ::taeda::Device {
 public:
  constexpr Device(::taeda::Device d) : ::taeda::Device(d) {}
  constexpr Device(DeviceType t, int8_t i = -1) : ::taeda::Device(t, i) {}
  Device(std::string_view text) : ::taeda::Device(parse(text)) {}
  Device(const char* text) : Device(std::string_view(text)) {}
  constexpr DeviceType type() const { return ::taeda::Device::type; }
  constexpr int8_t index() const { return ::taeda::Device::index; }
};
}  // namespace front

// Dims, or one dim, or none: an argument that owns the one.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  OptionalIntArrayRef(T one) : one_(one), kind_(Kind::One) {}
  template <class T>
    requires(std::is_convertible_v<const T&, IntArrayRef> &&
             !std::is_integral_v<T>)
  OptionalIntArrayRef(const T& list) : list_(list), kind_(Kind::List) {}
  OptionalIntArrayRef(const std::initializer_list<int64_t>& list)
      : list_(list.begin(), list.size()), kind_(Kind::List) {}
  template <class T>
    requires std::is_convertible_v<const T&, IntArrayRef>
  OptionalIntArrayRef(const std::optional<T>& list) {
    if (list) *this = OptionalIntArrayRef(*list);
  }
  // Valid as long as this object and the list that it was made of.
  operator std::optional<IntArrayRef>() const {
    if (kind_ == Kind::None) return std::nullopt;
    return kind_ == Kind::One ? IntArrayRef(&one_, 1) : list_;
  }

 private:
  enum class Kind : uint8_t { None, One, List };
  int64_t one_ = 0;
  IntArrayRef list_;
  Kind kind_ = Kind::None;
};

class TensorOptions {
 public:
  TensorOptions() = default;
  // Explicit, since factories take a plain dtype too.
  explicit TensorOptions(ScalarType t) : dtype_(t) {}
  TensorOptions(DeviceType t) : device_(t) {}
  TensorOptions(::taeda::Device d) : device_(d) {}

  TensorOptions dtype(std::optional<ScalarType> t) const {
    return changed(&TensorOptions::dtype_, t);
  }
  TensorOptions layout(std::optional<Layout> l) const {
    return changed(&TensorOptions::layout_, l);
  }
  TensorOptions device(std::optional<::taeda::Device> d) const {
    return changed(&TensorOptions::device_, d);
  }
  TensorOptions device(DeviceType t, int8_t index = -1) const {
    return device(::taeda::Device(t, index));
  }
  TensorOptions pinned_memory(std::optional<bool> on) const {
    return changed(&TensorOptions::pinned_memory_, on);
  }
  TensorOptions requires_grad(bool on) const {
    return changed(&TensorOptions::requires_grad_, on);
  }

  // What was said, or what holds where nothing was.
  ScalarType dtype() const { return dtype_.value_or(kFloat); }
  front::Device device() const { return device_.value_or(::taeda::Device()); }
  Layout layout() const { return layout_.value_or(kStrided); }
  bool pinned_memory() const { return pinned_memory_.value_or(false); }
  bool requires_grad() const { return requires_grad_; }

  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<::taeda::Device> device_opt() const { return device_; }
  std::optional<bool> pinned_memory_opt() const { return pinned_memory_; }

 private:
  template <class T>
  TensorOptions changed(T TensorOptions::*member,
                        std::type_identity_t<T> value) const {
    TensorOptions made = *this;
    made.*member = value;
    return made;
  }
  std::optional<ScalarType> dtype_;
  std::optional<Layout> layout_;
  std::optional<::taeda::Device> device_;
  std::optional<bool> pinned_memory_;
  bool requires_grad_ = false;
};

inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions layout(Layout l) { return TensorOptions().layout(l); }
inline TensorOptions requires_grad(bool on = true) {
  return TensorOptions().requires_grad(on);
}

// Elements of a tensor with N dims, for loops on the CPU: a[i][j].
template <class T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  decltype(auto) operator[](int64_t i) const {
    T* at = data_ + i * strides_[0];
    if constexpr (N == 1) {
      return *at;
    } else {
      return TensorAccessor<T, N - 1>(at, sizes_ + 1, strides_ + 1);
    }
  }
  int64_t size(int64_t d) const { return sizes_[d]; }
  int64_t stride(int64_t d) const { return strides_[d]; }
  IntArrayRef sizes() const { return {sizes_, N}; }
  IntArrayRef strides() const { return {strides_, N}; }
  T* data() const { return data_; }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

}  // namespace taeda
