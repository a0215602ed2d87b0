// The baseline kernels (16-byte vectors, which every architecture's g++ knows)
// and the choice between the levels.
#include <taeda/aten/native/blas/kernels.h>

#include <cstring>

#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/native/blas/kernels_impl.h>

namespace taeda::blas {
namespace isa_default {
namespace {

template <typename Scalar>
struct Vector16 {
  using T = Scalar;
  typedef Scalar Reg __attribute__((vector_size(16)));
  static constexpr int kWidth = 16 / sizeof(T);
  static constexpr int kRows = 4;
  static Reg zero() { return Reg{}; }
  static Reg set1(T x) { return Reg{} + x; }
  static Reg load(const T* p) {
    Reg x;
    std::memcpy(&x, p, sizeof(x));
    return x;
  }
  static Reg load_n(const T* p, int64_t n) {
    Reg x{};
    for (int i = 0; i < kWidth; ++i) {
      x[i] = i < n ? p[i] : T(0);
    }
    return x;
  }
  static void store(T* p, Reg x) { std::memcpy(p, &x, sizeof(x)); }
  static void store_n(T* p, Reg x, int64_t n) {
    for (int i = 0; i < kWidth && i < n; ++i) {
      p[i] = x[i];
    }
  }
  static Reg fma(Reg a, Reg b, Reg c) { return a * b + c; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static Reg add(Reg a, Reg b) { return a + b; }
  static T sum(Reg x) {
    T total = 0;
    for (int i = 0; i < kWidth; ++i) {
      total += x[i];
    }
    return total;
  }
  static void transpose8(const T* in, int64_t ld, T* out, int64_t ld_out) {
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) {
        out[j * ld_out + i] = in[i * ld + j];
      }
    }
  }
};

}  // namespace

const KernelSet kernel_set = kSetOf<Vector16<float>, Vector16<double>>;

}  // namespace isa_default

// TAEDA_HAVE_ISA_*: the levels that this build contains.
const KernelSet& kernel_set() {
  static const KernelSet* const chosen = [] {
    [[maybe_unused]] const auto level = cpu_capability();
#ifdef TAEDA_HAVE_ISA_AVX512
    if (level >= CpuCapability::kAvx512) {
      return &isa_avx512::kernel_set;
    }
#endif
#ifdef TAEDA_HAVE_ISA_AVX2
    if (level >= CpuCapability::kAvx2) {
      return &isa_avx2::kernel_set;
    }
#endif
    return &isa_default::kernel_set;
  }();
  return *chosen;
}

}  // namespace taeda::blas
