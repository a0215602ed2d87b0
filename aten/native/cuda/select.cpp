// Launches of the selection by digits.
#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/c10/cuda/device.h>
#include <taeda/aten/native/cuda/select_calls.cuh>

#include <climits>

namespace taeda::cuda {

namespace {

// One launch sorts rows up to here.
constexpr int64_t kSortedRow = 2048;
// A block reads a row once for each digit and once more; a sort reads and
// writes it several times, by all blocks.
constexpr int64_t kLongRow = 1 << 18;
constexpr int64_t kLeastShare = 4;

}  // namespace

bool selects_rows(const TensorBase& rows, int64_t wanted) {
  int64_t count = rows.sizes().back();
  if (count <= kSortedRow || wanted * kLeastShare > count || wanted == 0) {
    return false;
  }
  int64_t all = rows.numel() / count;
  bool busy = 2 * all >= properties_of(rows.device().index).multiprocessors;
  return count <= INT_MAX && all <= INT_MAX && (busy || count <= kLongRow);
}

std::tuple<TensorBase, TensorBase> select_rows(const TensorBase& rows,
                                               int64_t wanted,
                                               bool descending) {
  Device device = rows.device();
  DeviceGuard guard(device.index);
  DimVector sizes(rows.sizes().begin(), rows.sizes().end());
  sizes.back() = wanted;
  TensorBase values = make_tensor("topk", sizes, rows.dtype(), device);
  TensorBase indices = make_tensor("topk", sizes, kLong, device);
  SelectCall call{};
  call.count = rows.sizes().back();
  call.wanted = static_cast<int>(wanted);
  call.descending = descending ? 1 : 0;
  call.in = rows.const_raw_data();
  call.values = values.mutable_raw_data();
  call.indices = static_cast<long long*>(indices.mutable_raw_data());
  Grid grid;
  grid.x = static_cast<unsigned>(rows.numel() / call.count);
  grid.threads = kSelectThreads;
  run_blocks({"topk", "select", "select_row", "SelectCall"},
             {rows.dtype()},
             grid,
             &call);
  return {values, indices};
}

}  // namespace taeda::cuda
