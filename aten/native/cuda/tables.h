// Tables of tensors for kernels over lists.
#pragma once

#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/aten/native/cuda/table_calls.cuh>

#include <algorithm>
#include <climits>
#include <vector>

namespace taeda::cuda {

// Memory of the lists' tensors of one number; null for lists that are absent.
struct TableRow {
  int64_t numel = 0;
  void* memory[kTableLists] = {};
};

// Runs `launch(table, first row, chunks)` for as few tables as hold all rows.
template <class F>
void for_tables(const std::vector<TableRow>& rows, F launch) {
  size_t at = 0;
  while (at < rows.size()) {
    TensorTable table{};
    table.aligned = 1;
    size_t first = at;
    int64_t chunks = 0;
    while (at < rows.size() && table.tensors < kTableTensors) {
      const TableRow& row = rows[at];
      int64_t more = (row.numel + kTableChunk - 1) / kTableChunk;
      if (table.tensors > 0 && chunks + more > INT_MAX) break;
      int place = table.tensors++;
      table.numel[place] = row.numel;
      for (int l = 0; l < kTableLists; ++l) {
        table.memory[l][place] = row.memory[l];
        if (reinterpret_cast<uintptr_t>(row.memory[l]) % 16 != 0) {
          table.aligned = 0;
        }
      }
      chunks += more;
      table.first[place + 1] = static_cast<int>(chunks);
      ++at;
    }
    launch(table, first, static_cast<unsigned>(chunks));
  }
}

}  // namespace taeda::cuda
