// Folds and scans of rows by a record's formula.
#pragma once

#include <taeda/aten/native/cuda/given.h>

namespace taeda::cuda {

struct FoldedRows {
  int64_t rows = 0, count = 0;  // elements of each
  int step = 0;                 // 0 of folds, 1 or -1 of scans
  bool beside = true;           // a row's elements lie beside each other
};

// `call` has the formula, whose slots the rows' results end.
void run_rows_of(GivenCall& call, const FoldedRows& rows);

}  // namespace taeda::cuda
