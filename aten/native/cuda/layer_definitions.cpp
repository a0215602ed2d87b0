// Layers and joins that are made of other operators.
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/ordered.h>
#include <taeda/gen/ops/_unique2.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/empty_like.h>
#include <taeda/gen/ops/exponential_.h>
#include <taeda/gen/ops/full_like.h>
#include <taeda/gen/ops/ge.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/index_copy.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/isfinite.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/linalg_vector_norm.h>
#include <taeda/gen/ops/logical_and.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/searchsorted.h>
#include <taeda/gen/ops/sort.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/topk.h>
#include <taeda/gen/ops/uniform_.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

Tensor as_dtype(const Tensor& t, ScalarType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor made = make_tensor("to", t.sizes(), dtype, t.device());
  copy_into(made, t);
  return made;
}

// Joins ----------------------------------------------------------------------

bool is_skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

Tensor cat(TensorList tensors, int64_t dim) {
  ResultType common;
  DimVector sizes;
  int64_t total = 0;
  size_t along = 0;
  for (const Tensor& t : tensors) {
    common.add(t);
    if (is_skipped(t)) continue;
    sizes = DimVector(t.sizes().begin(), t.sizes().end());
    along = static_cast<size_t>(dim < 0 ? dim + t.dim() : dim);
    total += t.sizes()[along];
  }
  if (sizes.empty()) sizes.push_back(0);
  sizes[along] = total;
  Tensor out =
      make_tensor("cat", sizes, common.get(), tensors.front().device());
  int64_t begin = 0;
  for (const Tensor& t : tensors) {
    if (is_skipped(t)) continue;
    int64_t size = t.sizes()[along];
    copy_into(ops::narrow(out, static_cast<int64_t>(along), begin, size), t);
    begin += size;
  }
  return out;
}

Tensor stack(TensorList tensors, int64_t dim) {
  std::vector<TensorBase> rows;
  for (const Tensor& t : tensors) rows.push_back(ops::unsqueeze(t, dim));
  return ops::cat(rows, dim);
}

// The meta kernel has checked and warned.
void write_joined(const Tensor& joined, const Tensor& out) {
  check_castable("cat", joined.dtype(), out.dtype());
  check_no_internal_overlap("cat", out);
  if (out.sizes() != joined.sizes()) {
    resize_tensor_strided(out, joined.sizes(), joined.strides());
  }
  copy_into(out, joined);
  out.impl()->bump_version();
}
void cat_out(TensorList tensors, int64_t dim, const Tensor& out) {
  for (const Tensor& t : tensors) check_no_overlap("cat", out, t);
  write_joined(ops::cat(tensors, dim), out);
}
void stack_out(TensorList tensors, int64_t dim, const Tensor& out) {
  for (const Tensor& t : tensors) check_no_overlap("stack", out, t);
  write_joined(ops::stack(tensors, dim), out);
}

// Draws ----------------------------------------------------------------------

Tensor randperm_of(int64_t n,
                   const std::optional<Generator>& generator,
                   std::optional<ScalarType> dtype,
                   std::optional<Layout>,
                   std::optional<Device> device,
                   std::optional<bool>) {
  Device where = device ? *device : default_device();
  Tensor keys = make_tensor("randperm", {n}, kDouble, where);
  ops::uniform_(keys, 0, 1, generator);
  return as_dtype(std::get<1>(ops::sort(keys)), dtype ? *dtype : kLong);
}
Tensor randperm(int64_t n,
                std::optional<ScalarType> dtype,
                std::optional<Layout> layout,
                std::optional<Device> device,
                std::optional<bool> pinned) {
  return randperm_of(n, std::nullopt, dtype, layout, device, pinned);
}

// Waits for the device.
void check_weights(const Tensor& weights) {
  if (weights.numel() == 0) return;
  Tensor fits =
      ops::logical_and(ops::ge(weights, Scalar(0)), ops::isfinite(weights));
  TAEDA_CHECK(ops::item(ops::all(fits)).to_bool(),
              "probability tensor contains either `inf`, `nan` or element < 0");
  DimVector last{-1};
  Tensor sums = ops::sum(weights, IntArrayRef(last));
  TAEDA_CHECK(ops::item(ops::all(ops::gt(sums, Scalar(0)))).to_bool(),
              "invalid multinomial distribution (sum of probabilities <= 0)");
}

// The categories with the largest weight over an exponential number are drawn
// without replacement as they should be.
Tensor multinomial(const Tensor& self,
                   int64_t samples,
                   bool replacement,
                   const std::optional<Generator>& generator) {
  Tensor weights = as_dtype(self, kDouble);
  check_weights(weights);
  if (!replacement || samples == 1) {
    Tensor times = ops::empty_like(weights);
    ops::exponential_(times, 1, generator);
    return std::get<1>(ops::topk(ops::div(weights, times), samples, -1));
  }
  Tensor sums = ops::cumsum(weights, -1);
  DimVector sizes(self.sizes().begin(), self.sizes().end());
  sizes.back() = samples;
  Tensor drawn = make_tensor("multinomial", sizes, kDouble, self.device());
  ops::uniform_(drawn, 0, 1, generator);
  Tensor whole = ops::narrow(sums, -1, self.size(-1) - 1, 1);
  return ops::searchsorted(sums, ops::mul(drawn, whole), false, true);
}

// Embedding ------------------------------------------------------------------

// Rows that are named and longer than max_norm become that long.
void embedding_renorm(const Tensor& self,
                      const Tensor& indices,
                      double max_norm,
                      double norm_type) {
  if (indices.numel() == 0) return;
  Tensor rows = std::get<0>(ops::_unique2(indices));
  Tensor old = ops::index_select(self, 0, rows);
  DimVector last{1};
  Tensor norms =
      ops::linalg_vector_norm(old, norm_type, IntArrayRef(last), true);
  Tensor scale =
      ops::div(ops::full_like(norms, max_norm), ops::add(norms, Scalar(1e-7)));
  scale = ops::where(ops::gt(norms, Scalar(max_norm)), scale, Scalar(1));
  copy_into(self, ops::index_copy(self, 0, rows, ops::mul(old, scale)));
  self.impl()->bump_version();
}

Tensor embedding_dense_backward(const Tensor& grad_output,
                                const Tensor& indices,
                                int64_t rows,
                                int64_t padding_idx,
                                bool scale_grad_by_freq) {
  constexpr const char* kName = "embedding_dense_backward";
  int64_t width = grad_output.sizes().back();
  Tensor out =
      make_tensor(kName, {rows, width}, grad_output.dtype(), indices.device());
  fill_with(out, 0);
  if (grad_output.numel() == 0) return out;
  int64_t count = indices.numel();
  Tensor seen;
  if (scale_grad_by_freq) {
    seen = ops::zeros({rows}, kLong, std::nullopt, indices.device());
  }
  write_rows({kName,
              0,
              ops::reshape(indices, {count}),
              ops::reshape(grad_output, {count, width}),
              1,
              Combine::Add,
              seen},
             out);
  if (padding_idx >= 0) fill_with(ops::narrow(out, 0, padding_idx, 1), 0);
  if (!scale_grad_by_freq) return out;
  Tensor uses = ops::where(ops::gt(seen, Scalar(0)), seen, Scalar(1));
  return ops::div(out, ops::reshape(uses, {rows, 1}));
}

// Places of pooling ----------------------------------------------------------

// Elements of `source` at the places in their plane that `indices` names, in a
// tensor like `like`.
Tensor spread(const char* op,
              const Tensor& source,
              const Tensor& indices,
              IntArrayRef sizes,
              int64_t dims,
              bool adds) {
  Tensor out = make_tensor(op, sizes, source.dtype(), source.device());
  fill_with(out, 0);
  DeviceCall(op, "layers", "unpool_at(g, i);")
      .number("dims", dims)
      .number("adds", adds ? 1 : 0)
      .tensor("source", source)
      .tensor("indices", indices)
      .tensor("result", out)
      .run(source.numel());
  return out;
}

// Of the input of a pool that chose elements.
DeviceCall& chosen_back(DeviceCall& call,
                        const Tensor& grad,
                        const Tensor& indices,
                        const Tensor& out) {
  return call.tensor("grad", grad)
      .tensor("indices", indices)
      .tensor("result", out);
}

template <int64_t kDims>
Tensor max_pool_backward(const Tensor& grad,
                         const Tensor& self,
                         IntArrayRef window,
                         IntArrayRef steps,
                         IntArrayRef pads,
                         IntArrayRef dilations,
                         bool,
                         const Tensor& indices) {
  Tensor out =
      make_tensor("max_pool", self.sizes(), grad.dtype(), grad.device());
  DeviceCall call(
      "max_pool",
      "pooling_gradients",
      kDims == 2 ? "max_pool_back_at<2>(g, i);" : "max_pool_back_at<3>(g, i);");
  call.list("kernel_size", window)
      .list("stride", steps)
      .list("padding", pads)
      .list("dilation", dilations);
  chosen_back(call, grad, indices, out).run(out.numel());
  return out;
}
template <int64_t kDims>
Tensor adaptive_max_backward(const Tensor& grad,
                             const Tensor& self,
                             const Tensor& indices) {
  Tensor out = make_tensor(
      "adaptive_max_pool", self.sizes(), grad.dtype(), grad.device());
  DeviceCall call("adaptive_max_pool",
                  "pooling_gradients",
                  kDims == 2 ? "adaptive_max_back_at<2>(g, i);"
                             : "adaptive_max_back_at<3>(g, i);");
  chosen_back(call, grad, indices, out).run(out.numel());
  return out;
}
template <int64_t kDims>
Tensor fractional_backward(const Tensor& grad,
                           const Tensor& self,
                           IntArrayRef,
                           IntArrayRef,
                           const Tensor& indices) {
  return spread(
      "fractional_max_pool", grad, indices, self.sizes(), kDims, true);
}

DimVector unpooled(const Tensor& self, IntArrayRef output_size) {
  DimVector sizes(self.sizes().begin(), self.sizes().end());
  size_t lead = sizes.size() - output_size.size();
  for (size_t d = 0; d < output_size.size(); ++d) {
    sizes[lead + d] = output_size[d];
  }
  return sizes;
}
Tensor max_unpool2d(const Tensor& self,
                    const Tensor& indices,
                    IntArrayRef size) {
  return spread("max_unpool2d", self, indices, unpooled(self, size), 2, false);
}
Tensor max_unpool3d(const Tensor& self,
                    const Tensor& indices,
                    IntArrayRef size,
                    IntArrayRef,
                    IntArrayRef) {
  return spread("max_unpool3d", self, indices, unpooled(self, size), 3, false);
}

}  // namespace

Definitions layer_definitions() {
  static const Definition all[] = {
      defined_as("cat", cat),
      defined_as("stack", stack),
      defined_as("cat.out", cat_out),
      defined_as("stack.out", stack_out),
      defined_as("randperm", randperm),
      defined_as("randperm.generator", randperm_of),
      defined_as("multinomial", multinomial),
      defined_as("embedding_renorm_", embedding_renorm),
      defined_as("embedding_dense_backward", embedding_dense_backward),
      defined_as("max_pool2d_with_indices_backward", max_pool_backward<2>),
      defined_as("max_pool3d_with_indices_backward", max_pool_backward<3>),
      defined_as("adaptive_max_pool2d_backward", adaptive_max_backward<2>),
      defined_as("adaptive_max_pool3d_backward", adaptive_max_backward<3>),
      defined_as("fractional_max_pool2d_backward", fractional_backward<2>),
      defined_as("fractional_max_pool3d_backward", fractional_backward<3>),
      defined_as("max_unpool2d", max_unpool2d),
      defined_as("max_unpool3d", max_unpool3d),
  };
  return all;
}

}  // namespace taeda::cuda
