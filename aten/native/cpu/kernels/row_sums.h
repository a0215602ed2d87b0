// Sums of chosen rows of a table, per ISA level.
#pragma once

#include <taeda/aten/native/cpu/kernels/float_table.h>

#include <cstdint>

namespace taeda {

template <class T>
struct RowSumKernels {
  // out = the sum of the rows that `index` names but for `skipped`, each times
  // its factor unless `factors` is null, divided by `parts`.
  void (*sum_rows)(const T* table,
                   int64_t width,
                   const int64_t* index,
                   const T* factors,
                   int64_t count,
                   int64_t skipped,
                   int64_t parts,
                   T* out);
};

using RowSumTable = FloatTable<RowSumKernels>;

namespace isa_default {
extern const RowSumTable kRowSumTable;
}
namespace isa_avx2 {
extern const RowSumTable kRowSumTable;
}
namespace isa_avx512 {
extern const RowSumTable kRowSumTable;
}

}  // namespace taeda
