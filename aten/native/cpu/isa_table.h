// Picks the ISA level's copy of a kernel table.
#pragma once

#include <taeda/aten/cpu_capability.h>

namespace taeda {

// TAEDA_ISA_TABLE(kConvertTable) is the table of the level in use. Builds with
// the baseline level only (sanitizers) define TAEDA_BASELINE_ONLY.
#ifdef TAEDA_BASELINE_ONLY
#define TAEDA_ISA_TABLE(name) (::taeda::isa_default::name)
#else
#define TAEDA_ISA_TABLE(name)                                   \
  (::taeda::cpu_capability() == ::taeda::CpuCapability::kAvx512 \
       ? ::taeda::isa_avx512::name                              \
   : ::taeda::cpu_capability() == ::taeda::CpuCapability::kAvx2 \
       ? ::taeda::isa_avx2::name                                \
       : ::taeda::isa_default::name)
#endif

}  // namespace taeda
