// Which instruction set the CPU kernels use.
#pragma once

#include <taeda/c10/util/macros.h>

namespace taeda {

// Each level includes those before it. Sources compiled for a level are named
// after it: softmax.avx2.cpp, softmax.avx512.cpp.
enum class CpuCapability {
  kDefault = 0,  // baseline x86-64: SSE2
  kAvx2 = 1,     // AVX2, FMA, F16C
  kAvx512 = 2,   // AVX-512 F, BW, DQ, VL
};

// The level in use: what the processor and the operating system support, or
// the lower one that TAEDA_CPU_CAPABILITY (default, avx2, avx512) names.
// Decided on the first call and the same ever after.
TAEDA_API CpuCapability cpu_capability();

// "DEFAULT", "AVX2" or "AVX512", as torch.backends.cpu spells them.
TAEDA_API const char* cpu_capability_name();

namespace detail {

// The choice for a processor's level and an environment value (may be null).
// A level that is not there, or a word that is not one, changes nothing.
TAEDA_API CpuCapability choose_capability(CpuCapability supported,
                                          const char* wanted);

}  // namespace detail
}  // namespace taeda
