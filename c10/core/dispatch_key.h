// Which implementation of an operator runs: the highest key that the arguments
// or the thread ask for.
#pragma once

#include <taeda/c10/core/device.h>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace taeda {

// Backends first, then features from the innermost to the outermost. Python,
// Wrapped and Intercept belong to the levels of aten/core/level.h, Symbolic
// to tensors without memory whose sizes are symbols (aten/iter/symbolic.h).
enum class DispatchKey : uint8_t {
  CPU,
  CUDA,
  Meta,
  PrivateUse1,
  SparseCPU,
  SparseCUDA,
  QuantizedCPU,
  Negative,
  Conjugate,
  ZeroTensor,
  Symbolic,
  Python,   // modes and subclasses of Python, below autograd
  Wrapped,  // the value in a wrapper of a level, below autograd
  Functionalize,
  Autograd,
  SymbolicGrad,  // autograd of tensors whose sizes are symbols
  Autocast,
  Intercept,  // the innermost level of the thread
  NumKeys,
};
inline constexpr int kNumDispatchKeys = static_cast<int>(DispatchKey::NumKeys);
inline constexpr int kNumBackendKeys =
    static_cast<int>(DispatchKey::QuantizedCPU) + 1;

class DispatchKeySet {
 public:
  constexpr DispatchKeySet() = default;
  constexpr DispatchKeySet(DispatchKey k) : bits_(bit(k)) {}
  constexpr DispatchKeySet(std::initializer_list<DispatchKey> keys) {
    for (DispatchKey k : keys) bits_ |= bit(k);
  }
  static constexpr DispatchKeySet raw(uint64_t bits) {
    DispatchKeySet s;
    s.bits_ = bits;
    return s;
  }
  // Every key below `k`.
  static constexpr DispatchKeySet below(DispatchKey k) {
    return raw(bit(k) - 1);
  }
  constexpr uint64_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(DispatchKey k) const { return (bits_ & bit(k)) != 0; }
  constexpr DispatchKey highest() const {
    return static_cast<DispatchKey>(63 - std::countl_zero(bits_));
  }
  constexpr DispatchKeySet operator|(DispatchKeySet o) const {
    return raw(bits_ | o.bits_);
  }
  constexpr DispatchKeySet operator&(DispatchKeySet o) const {
    return raw(bits_ & o.bits_);
  }
  constexpr DispatchKeySet operator-(DispatchKeySet o) const {
    return raw(bits_ & ~o.bits_);
  }
  constexpr bool operator==(const DispatchKeySet&) const = default;

 private:
  static constexpr uint64_t bit(DispatchKey k) {
    return uint64_t{1} << static_cast<int>(k);
  }
  uint64_t bits_ = 0;
};

inline constexpr DispatchKeySet kBackendKeys =
    DispatchKeySet::raw((uint64_t{1} << kNumBackendKeys) - 1);

TAEDA_API std::string_view dispatch_key_name(DispatchKey k);
// "CPU", "AutogradCPU", "CompositeImplicitAutograd", ... as PyTorch names them;
// several of PyTorch's names stand for one key here.
TAEDA_API bool parse_dispatch_key(std::string_view name, DispatchKey* out);
// The backend key of a device; RuntimeError where there is none.
TAEDA_API DispatchKey backend_key(DeviceType type);

}  // namespace taeda
