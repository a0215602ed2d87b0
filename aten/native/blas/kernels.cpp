// The baseline kernels (16-byte vectors, which every architecture's g++ knows)
// and the choice between the levels.
#include <taeda/aten/native/blas/kernels.h>

#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/native/blas/kernels_impl.h>

namespace taeda::blas {
namespace isa_default {

const KernelSet kernel_set =
    kSetOf<PlainVector<float, 16, 4>, PlainVector<double, 16, 4>, 16, 4>;

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
