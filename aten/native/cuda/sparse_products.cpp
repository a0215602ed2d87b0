// See Note [Sparse products].
#include <taeda/aten/native/cuda/sparse_products.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/aten/native/cuda/sparse_calls.cuh>

namespace taeda::cuda {

namespace {

constexpr unsigned kThreads = 128;  // four warps, a row each

void run(const char* function,
         const Tensor& offsets,
         const Tensor& out,
         int64_t widths,
         SparseCall& call) {
  DeviceGuard guard(out.device().index);
  Grid grid;
  grid.threads = kThreads;
  grid.x = static_cast<unsigned>((call.rows + 3) / 4);
  grid.y = static_cast<unsigned>(widths);
  TemplateArgument arguments[] = {out.dtype(), offsets.dtype()};
  run_blocks({"sparse_mm", "sparse_rows", function, "SparseCall"},
             arguments,
             grid,
             &call);
}

Tensor times(const Tensor& offsets,
             const Tensor& places,
             const Tensor& values,
             const Tensor& dense) {
  int64_t sizes[] = {offsets.size(0) - 1, dense.size(1)};
  Tensor out = make_tensor("sparse_mm", sizes, values.dtype(), dense.device());
  if (out.numel() == 0) return out;
  Tensor starts = contiguous(offsets), columns = contiguous(places);
  Tensor entries = contiguous(values), rows = contiguous(dense);
  SparseCall call{sizes[0],
                  sizes[1],
                  starts.const_raw_data(),
                  columns.const_raw_data(),
                  entries.const_raw_data(),
                  rows.const_raw_data(),
                  out.mutable_raw_data()};
  bool vector = sizes[1] == 1;
  run(vector ? "sparse_vector_kernel" : "sparse_rows_kernel",
      starts,
      out,
      vector ? 1 : (sizes[1] + 31) / 32,
      call);
  return out;
}

Tensor sampled(const Tensor& offsets,
               const Tensor& places,
               const Tensor& left,
               const Tensor& right) {
  Tensor out =
      make_tensor("sparse_mm", places.sizes(), left.dtype(), left.device());
  if (out.numel() == 0) return out;
  Tensor starts = contiguous(offsets), columns = contiguous(places);
  Tensor rows = contiguous(left);
  Tensor turned = contiguous(ops::transpose(right, 0, 1));
  SparseCall call{offsets.size(0) - 1,
                  left.size(1),
                  starts.const_raw_data(),
                  columns.const_raw_data(),
                  rows.const_raw_data(),
                  turned.const_raw_data(),
                  out.mutable_raw_data()};
  run("sampled_kernel", starts, out, 1, call);
  return out;
}

}  // namespace

const native::SparseProducts kSparseProducts{&times, &sampled};

}  // namespace taeda::cuda
