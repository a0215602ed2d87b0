// Random number generators: seed, engine state, and the lock that makes one
// random operator's draws consecutive.
#pragma once

#include <taeda/c10/core/device.h>
#include <taeda/c10/core/mt19937.h>
#include <taeda/c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace taeda {

/// What every device's generator can do. Callers hold mutex() while drawing or
/// changing the state; the functions here do not lock.
class TAEDA_API GeneratorImpl : public IntrusiveTarget {
 public:
  /// The seed of a generator that nobody has seeded (PyTorch's constant).
  static constexpr uint64_t kDefaultSeed = 67280421310721;

  explicit GeneratorImpl(Device device) : device_(device) {}

  virtual void manual_seed(uint64_t seed) = 0;
  virtual uint64_t initial_seed() const = 0;
  virtual size_t state_size() const = 0;
  virtual void get_state(uint8_t* bytes) const = 0;
  virtual void set_state(const uint8_t* bytes, size_t size) = 0;
  virtual IntrusivePtr<GeneratorImpl> clone() const = 0;

  /// Seeds from the system's entropy and returns that seed.
  uint64_t seed();
  Device device() const { return device_; }
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  Device device_;
};

/// The CPU's: MT19937, whose stream and saved state are PyTorch's.
class TAEDA_API CpuGeneratorImpl final : public GeneratorImpl {
 public:
  /// Bytes of a saved state.
  static constexpr size_t kStateSize = 5056;

  explicit CpuGeneratorImpl(uint64_t seed = kDefaultSeed);

  void manual_seed(uint64_t seed) override;
  uint64_t initial_seed() const override { return initial_seed_; }
  size_t state_size() const override { return kStateSize; }
  void get_state(uint8_t* bytes) const override;
  void set_state(const uint8_t* bytes, size_t size) override;
  IntrusivePtr<GeneratorImpl> clone() const override;

  Mt19937& engine() { return engine_; }
  uint32_t random() { return engine_.random(); }
  uint64_t random64() { return engine_.random64(); }

  /// The second value of the last Box-Muller pair in double precision; the
  /// next scalar normal draw takes it before drawing words.
  std::optional<double>& cached_normal() { return cached_normal_; }

 private:
  Mt19937 engine_;
  uint64_t initial_seed_;
  std::optional<double> cached_normal_;
  // Kept because a saved state has room for it; no operator draws it.
  std::optional<float> cached_float_normal_;
};

using Generator = IntrusivePtr<GeneratorImpl>;

/// The process's CPU generator, which operators use when given none.
TAEDA_API CpuGeneratorImpl& default_cpu_generator();

/// A new CPU generator with the default seed.
TAEDA_API Generator
make_cpu_generator(uint64_t seed = GeneratorImpl::kDefaultSeed);

/// `generator`, or the default one when it is null; RuntimeError when it is
/// for another device.
TAEDA_API CpuGeneratorImpl& check_cpu_generator(const Generator& generator);

}  // namespace taeda
