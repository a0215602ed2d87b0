// Kernel sources are compiled once per ISA level with TAEDA_ISA naming it. What
// they define lives in an inline-free namespace of that level, so that the
// three copies do not meet at link time; a table per level picks one at load.
#pragma once

#ifndef TAEDA_ISA
#define TAEDA_ISA isa_default
#endif

#define TAEDA_ISA_BEGIN \
  namespace taeda {     \
  namespace TAEDA_ISA {
#define TAEDA_ISA_END \
  }                   \
  }
