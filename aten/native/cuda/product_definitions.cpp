// Products that are made of mm, mv, dot and bmm.
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/addmm.h>
#include <taeda/gen/ops/bmm.h>
#include <taeda/gen/ops/dot.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/mv.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/t.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

IntArrayRef leading(const Tensor& t) {
  return IntArrayRef(t.sizes().data(), t.sizes().size() - 2);
}

DimVector joined(IntArrayRef a, std::initializer_list<int64_t> b) {
  DimVector all(a.begin(), a.end());
  for (int64_t size : b) all.push_back(size);
  return all;
}

// Sizes that both sides of a product broadcast to, without the matrices' own.
DimVector common(IntArrayRef a, IntArrayRef b) {
  size_t rank = std::max(a.size(), b.size());
  DimVector all(rank, 1);
  for (IntArrayRef side : {a, b}) {
    for (size_t d = 0; d < side.size(); ++d) {
      int64_t& size = all[rank - side.size() + d];
      if (side[d] != 1) size = side[d];
    }
  }
  return all;
}

Tensor batches(const Tensor& t, IntArrayRef lead) {
  int64_t count = 1;
  for (int64_t size : lead) count *= size;
  int64_t rows = t.size(-2), columns = t.size(-1);
  Tensor wide = ops::expand(t, joined(lead, {rows, columns}));
  return ops::reshape(wide, {count, rows, columns});
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.dim() == 1 && b.dim() == 1) return ops::dot(a, b);
  if (a.dim() == 2 && b.dim() == 1) return ops::mv(a, b);
  if (a.dim() == 2 && b.dim() == 2) return ops::mm(a, b);
  if (a.dim() == 1) {
    return ops::squeeze(ops::matmul(ops::unsqueeze(a, 0), b), -2);
  }
  if (b.dim() == 1) {
    return ops::squeeze(ops::matmul(a, ops::unsqueeze(b, 1)), -1);
  }
  DimVector lead = common(leading(a), leading(b));
  Tensor product = ops::bmm(batches(a, lead), batches(b, lead));
  return ops::reshape(product, joined(lead, {a.size(-2), b.size(-1)}));
}

Tensor linear(const Tensor& input,
              const Tensor& weight,
              const OptionalTensor& bias) {
  Tensor columns = weight.dim() == 1 ? weight : ops::t(weight);
  if (!bias || !bias->defined()) return ops::matmul(input, columns);
  if (weight.dim() == 1 || input.dim() == 1) {
    return ops::add(ops::matmul(input, columns), *bias);
  }
  // The bias is added before the sum is rounded.
  int64_t width = input.size(-1), height = 1;
  for (int64_t d = 0; d + 1 < input.dim(); ++d) height *= input.size(d);
  Tensor rows = ops::reshape(input, {height, width});
  DimVector sizes(input.sizes().begin(), input.sizes().end());
  sizes.back() = weight.size(0);
  return ops::reshape(ops::addmm(*bias, rows, columns), sizes);
}

}  // namespace

Definitions product_definitions() {
  static const Definition all[] = {
      defined_as("matmul", matmul),
      defined_as("linear", linear),
  };
  return all;
}

}  // namespace taeda::cuda
