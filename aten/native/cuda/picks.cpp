// gather, index_select and embedding where tensors lie as most do.
#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/native/cuda/quick.h>

#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/aten/native/cuda/moves.h>
#include <taeda/c10/cuda/device.h>
#include <taeda/c10/cuda/fault.h>
#include <taeda/aten/native/cuda/picks_calls.cuh>

#include <algorithm>
#include <climits>
#include <string_view>

namespace taeda::cuda {

namespace {

constexpr int64_t kAccess = 16;  // bytes of the widest access

// A tensor as [outer, size, inner], where it is that with steps for the first
// two and inner elements beside each other.
struct Rows {
  int64_t outer = 1, size = 1, inner = 1;
  int64_t outer_step = 0, row_step = 1;  // in elements
  bool fits = true;
};

Rows rows_of(const TensorBase& t, int64_t dim) {
  Rows rows;
  if (t.dim() == 0) return rows;
  auto d = static_cast<size_t>(dim < 0 ? dim + t.dim() : dim);
  rows.size = t.sizes()[d];
  rows.row_step = t.strides()[d];
  for (size_t k = t.sizes().size(); k-- > d + 1;) {
    if (t.sizes()[k] != 1 && t.strides()[k] != rows.inner) rows.fits = false;
    rows.inner *= t.sizes()[k];
  }
  for (size_t k = d; k-- > 0;) {
    if (t.sizes()[k] == 1) continue;
    if (rows.outer == 1) rows.outer_step = t.strides()[k];
    if (t.strides()[k] != rows.outer_step * rows.outer) rows.fits = false;
    rows.outer *= t.sizes()[k];
  }
  return rows;
}

bool run_pick(const char* op,
              const TensorBase& in,
              const Rows& from,
              const TensorBase& index,
              const TensorBase& out,
              bool each) {
  bool named = index.dtype() == kLong || index.dtype() == kInt;
  if (!from.fits || !named || !index.is_contiguous() || !out.is_contiguous()) {
    return false;
  }
  if (out.numel() == 0) return true;
  auto itemsize = static_cast<int64_t>(in.itemsize());
  uint64_t all = kAccess | reinterpret_cast<uintptr_t>(in.const_raw_data()) |
                 reinterpret_cast<uintptr_t>(out.const_raw_data());
  for (int64_t step : {from.inner, from.outer_step, from.row_step}) {
    all |= static_cast<uint64_t>(step * itemsize);
  }
  int64_t bytes = static_cast<int64_t>(all & (~all + 1));
  if (each) bytes = itemsize;
  if (bytes < itemsize) return false;
  PickCall call{};
  DeviceGuard guard(out.device().index);
  call.fault = fault_of(current_device());
  call.op = op;
  call.in = in.const_raw_data();
  call.out = out.mutable_raw_data();
  call.index = index.const_raw_data();
  call.count = out.numel() * itemsize / bytes;
  call.inner = from.inner * itemsize / bytes;
  call.rows = out.numel() / (from.outer * from.inner);
  call.size = from.size;
  call.outer_step = from.outer_step * itemsize / bytes;
  call.row_step = from.row_step * itemsize / bytes;
  constexpr int64_t kOfBlock = kPickThreads * kPickHeld;
  int64_t blocks = (call.count + kOfBlock - 1) / kOfBlock;
  if (blocks > INT_MAX) return false;
  TemplateArgument arguments[] = {word_of(bytes),
                                  index.dtype(),
                                  call.count > INT_MAX ? 1 : 0,
                                  each ? 1 : 0};
  run_blocks({op, "picks", "pick_words", "PickCall"},
             arguments,
             Grid{static_cast<unsigned>(blocks), 1, kPickThreads},
             &call);
  return true;
}

}  // namespace

bool index_select_quick(const IValue* values,
                        const std::vector<TensorBase>& results) {
  const auto& self = values[0].get<TensorBase>();
  Rows rows = rows_of(self, values[1].get<int64_t>());
  const auto& index = values[2].get<TensorBase>();
  return run_pick("index_select", self, rows, index, results[0], false);
}

bool embedding_quick(const IValue* values,
                     const std::vector<TensorBase>& results) {
  const auto& weight = values[0].get<TensorBase>();
  const auto& indices = values[1].get<TensorBase>();
  Rows rows = rows_of(weight, 0);
  return run_pick("embedding", weight, rows, indices, results[0], false);
}

// Rows of the index and of self are the same along all other dims.
bool gather_quick(const IValue* values,
                  const std::vector<TensorBase>& results) {
  const auto& self = values[0].get<TensorBase>();
  const auto& index = values[2].get<TensorBase>();
  int64_t dim = values[1].get<int64_t>();
  if (self.dim() != index.dim() || self.dim() == 0) return false;
  auto d = static_cast<size_t>(dim < 0 ? dim + self.dim() : dim);
  for (size_t k = 0; k < self.sizes().size(); ++k) {
    if (k != d && self.sizes()[k] != index.sizes()[k]) return false;
  }
  return run_pick("gather", self, rows_of(self, dim), index, results[0], true);
}

}  // namespace taeda::cuda
