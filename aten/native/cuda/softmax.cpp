// softmax and log_softmax on the device.
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/rows.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

// From this many columns beside each other on they are read as columns.
constexpr int kColumnLanes = 8;

// A tensor as rows of `count` elements that stand `width` elements apart.
struct Rows {
  int64_t rows = 1, count = 1, width = 1;
  Rows(IntArrayRef sizes, int64_t dim) {
    auto rank = static_cast<int64_t>(sizes.size());
    if (dim < 0) dim += rank;
    for (int64_t d = 0; d < rank; ++d) {
      int64_t size = sizes[static_cast<size_t>(d)];
      if (d == dim) {
        count = size;
      } else {
        rows *= size;
      }
      if (d > dim) width *= size;
    }
  }
};

struct SoftmaxKernel {
  RowKernel rows;
  const char* columns;
  bool log;
};

Tensor run(const SoftmaxKernel& kernel,
           const Tensor& first,
           const Tensor& second,
           int64_t dim) {
  Tensor out =
      make_tensor(kernel.rows.op, first.sizes(), first.dtype(), first.device());
  if (out.numel() == 0) return out;
  Rows rows(first.sizes(), dim);
  RowCall call{};
  call.rows = rows.rows;
  call.count = rows.count;
  call.width = rows.width;
  call.in[0] = first.const_raw_data();
  if (second.defined()) call.in[1] = second.const_raw_data();
  call.out = out.mutable_raw_data();
  ScalarType t = first.dtype();
  if (rows.width == 1) {
    run_rows(kernel.rows, t, t, first.device(), call);
    return out;
  }
  DeviceGuard guard(first.device().index);
  Grid grid;
  grid.x = static_cast<unsigned>((rows.rows + 31) / 32);
  grid.threads = 32 * kColumnLanes;
  TemplateArgument arguments[] = {
      t, kernel.log ? "true" : "false", kColumnLanes};
  BlockKernel block{kernel.rows.op, "softmax", kernel.columns, "RowCall"};
  run_blocks(block, arguments, grid, &call);
  return out;
}

constexpr SoftmaxKernel kSoftmax{
    {"_softmax", "softmax", "Softmax", 1, 2}, "softmax_columns", false};
constexpr SoftmaxKernel kLogSoftmax{
    {"_log_softmax", "softmax", "LogSoftmax", 1, 2}, "softmax_columns", true};
constexpr SoftmaxKernel kSoftmaxBack{
    {"_softmax_backward_data", "softmax", "SoftmaxBack", 2, 1},
    "softmax_back_columns",
    false};
constexpr SoftmaxKernel kLogSoftmaxBack{
    {"_log_softmax_backward_data", "softmax", "LogSoftmaxBack", 2, 1},
    "softmax_back_columns",
    true};

Tensor softmax(const Tensor& self, int64_t dim, bool) {
  return run(kSoftmax, in_rows(self), Tensor(), dim);
}
Tensor log_softmax(const Tensor& self, int64_t dim, bool) {
  return run(kLogSoftmax, in_rows(self), Tensor(), dim);
}
// A gradient of another dtype than the result's is computed with as the wider.
Tensor backward(const SoftmaxKernel& kernel,
                const Tensor& grad,
                const Tensor& output,
                int64_t dim) {
  bool wider = grad.itemsize() < output.itemsize();
  ScalarType t = wider ? output.dtype() : grad.dtype();
  return run(kernel, in_dtype(grad, t), in_dtype(output, t), dim);
}
Tensor softmax_backward(const Tensor& grad,
                        const Tensor& output,
                        int64_t dim,
                        ScalarType) {
  return backward(kSoftmaxBack, grad, output, dim);
}
Tensor log_softmax_backward(const Tensor& grad,
                            const Tensor& output,
                            int64_t dim,
                            ScalarType) {
  return backward(kLogSoftmaxBack, grad, output, dim);
}

}  // namespace

Definitions softmax_definitions() {
  static const Definition all[] = {
      defined_as("_softmax", softmax),
      defined_as("_log_softmax", log_softmax),
      defined_as("_softmax_backward_data", softmax_backward),
      defined_as("_log_softmax_backward_data", log_softmax_backward),
  };
  return all;
}

}  // namespace taeda::cuda
