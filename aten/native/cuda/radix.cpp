// Launches of the sort by digits.
#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/radix_calls.cuh>

#include <algorithm>
#include <climits>

namespace taeda::cuda {

namespace {

constexpr int64_t kMostRows = 65535;  // of one launch

BlockKernel kernel_of(const char* function) {
  return {"sort", "radix", function, "SortCall"};
}

const void* moved(const void* at, int64_t bytes) {
  return static_cast<const char*>(at) + bytes;
}

// Three launches for each digit, for as many rows at once as a grid has.
void sort_long(SortCall call, ScalarType t, int64_t rows, Device device) {
  auto itemsize = static_cast<int64_t>(element_size(t));
  int64_t n = rows * call.count;
  auto made = [&](int64_t bytes) {
    return make_tensor("sort", {bytes}, kByte, device);
  };
  int64_t key = itemsize == 8 ? 8 : 4;
  bool several = itemsize > 1;
  Tensor keys[2], places[2];
  for (int i = 0; i < 2 && several; ++i) {
    keys[i] = made(n * key);
    places[i] = made(n * 4);
  }
  Tensor counts = made(rows * call.tiles * kSortDigits * 4);
  call.counts = static_cast<unsigned*>(counts.mutable_raw_data());
  TemplateArgument stored[] = {t}, none[] = {0};
  Grid tiles{static_cast<unsigned>(call.tiles),
             static_cast<unsigned>(rows),
             kSortThreads};
  for (int64_t digit = 0; digit < itemsize; ++digit) {
    call.shift = static_cast<int>(8 * digit);
    call.last = digit + 1 == itemsize ? 1 : 0;
    if (digit > 0) {
      call.keys = call.next_keys;
      call.places = call.next_places;
    }
    if (!call.last) {
      const Tensor& to = keys[digit % 2];
      call.next_keys = to.mutable_raw_data();
      call.next_places =
          static_cast<unsigned*>(places[digit % 2].mutable_raw_data());
    }
    run_blocks(kernel_of("sort_count"), stored, tiles, &call);
    run_blocks(kernel_of("sort_sums"),
               none,
               Grid{static_cast<unsigned>(rows), 1, kSortThreads},
               &call);
    run_blocks(kernel_of("sort_move"), stored, tiles, &call);
  }
}

}  // namespace

std::tuple<TensorBase, TensorBase> sort_rows(const TensorBase& rows,
                                             bool descending) {
  Device device = rows.device();
  DeviceGuard guard(device.index);
  Tensor values = make_tensor("sort", rows.sizes(), rows.dtype(), device);
  Tensor indices = make_tensor("sort", rows.sizes(), kLong, device);
  SortCall call{};
  call.count = rows.sizes().back();
  TAEDA_CHECK_AS(NotImplemented,
                 call.count <= UINT_MAX / 2,
                 "sort: CUDA kernels take rows of at most ",
                 UINT_MAX / 2,
                 " elements, got ",
                 call.count);
  int64_t left = rows.numel() / call.count;
  call.tiles = static_cast<int>((call.count + kSortTile - 1) / kSortTile);
  call.descending = descending ? 1 : 0;
  call.in = rows.const_raw_data();
  call.values = values.mutable_raw_data();
  call.indices = static_cast<long long*>(indices.mutable_raw_data());
  ScalarType t = rows.dtype();
  int64_t most = call.tiles == 1 ? INT_MAX : kMostRows;
  while (left > 0) {
    int64_t some = std::min(left, most);
    if (call.tiles == 1) {
      TemplateArgument stored[] = {t};
      Grid grid{static_cast<unsigned>(some), 1, kSortThreads};
      run_blocks(kernel_of("sort_tile"), stored, grid, &call);
    } else {
      sort_long(call, t, some, device);
    }
    int64_t elements = some * call.count;
    auto itemsize = static_cast<int64_t>(rows.itemsize());
    call.in = moved(call.in, elements * itemsize);
    call.values = const_cast<void*>(moved(call.values, elements * itemsize));
    call.indices += elements;
    left -= some;
  }
  return {values, indices};
}

}  // namespace taeda::cuda
