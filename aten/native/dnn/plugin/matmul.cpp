#include "matmul.h"

#include <bit>
#include <vector>

#include "descriptors.h"
#include "plan.h"
#include "runtime.h"

namespace taeda::dnn {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

constexpr int64_t kMatMul = 100;  // apart from the passes of a convolution

dnnl::memory::data_type type_of(DataType dtype) {
  return dtype == DataType::kBF16 ? dnnl::memory::data_type::bf16
                                  : dnnl::memory::data_type::f32;
}

// rows x cols of op(X); a batch of one is a plain matrix, and a matrix that
// repeats has batch 1, which oneDNN broadcasts.
Desc matrix(const MatMul& m,
            int64_t rows,
            int64_t cols,
            bool trans,
            int64_t ld,
            int64_t stride) {
  Dims dims{rows, cols};
  Dims strides{trans ? 1 : ld, trans ? ld : 1};
  if (m.batch > 1) {
    dims.insert(dims.begin(), stride == 0 ? 1 : m.batch);
    strides.insert(strides.begin(), stride == 0 ? rows * cols : stride);
  }
  return {dims, type_of(m.dtype), strides};
}

// A weight that is used again gains from the layout of the primitive's choice.
std::unique_ptr<Plan> build(const MatMul& m, bool keep_b) {
  const Desc a = matrix(m, m.m, m.k, m.trans_a, m.lda, m.stride_a);
  const Desc b = matrix(m, m.k, m.n, m.trans_b, m.ldb, m.stride_b);
  const Desc c = matrix(m, m.m, m.n, false, m.ldc, m.stride_c);
  Desc asked_b = b;
  if (keep_b && m.batch == 1) {
    asked_b = {{m.k, m.n}, type_of(m.dtype), dnnl::memory::format_tag::any};
  }
  Desc bias;
  if (m.has_bias) {
    Dims dims(m.batch > 1 ? 3 : 2, 1);
    dims.back() = m.n;
    Dims strides(dims.size(), m.n);
    strides.back() = 1;
    bias = {dims, type_of(m.dtype), strides};
  }
  const auto pd = matmul_desc(a, asked_b, bias, c, m.beta);
  if (!pd) {
    return nullptr;
  }
  std::vector<Slot> slots{
      {DNNL_ARG_SRC, Role::kInput, a, pd.src_desc()},
      {DNNL_ARG_WEIGHTS, Role::kWeight, b, pd.weights_desc()},
      {DNNL_ARG_DST, Role::kOutput, c, pd.dst_desc()}};
  if (m.has_bias) {
    slots.push_back({DNNL_ARG_BIAS, Role::kInput, bias, pd.bias_desc()});
  }
  return std::make_unique<Plan>(
      dnnl::matmul(pd), pd.scratchpad_desc(), std::move(slots));
}

}  // namespace

bool run_matmul(const MatMul& m,
                const void* a,
                const void* b,
                WeightId b_id,
                const void* bias,
                void* c) {
  const bool keep_b = b_id.storage != nullptr;
  Key key;
  key.add(kMatMul)
      .add(static_cast<int64_t>(m.dtype))
      .add(m.trans_a)
      .add(m.trans_b)
      .add(m.has_bias)
      .add(keep_b)
      .add(m.batch)
      .add(m.m)
      .add(m.n)
      .add(m.k)
      .add(m.lda)
      .add(m.ldb)
      .add(m.ldc)
      .add(m.stride_a)
      .add(m.stride_b)
      .add(m.stride_c)
      .add(std::bit_cast<int32_t>(m.beta));
  const auto plan = find_plan(std::move(key), [&] { return build(m, keep_b); });
  if (plan == nullptr) {
    return false;
  }
  if (m.has_bias) {
    plan->run({a, b, c, bias}, b_id);
  } else {
    plan->run({a, b, c}, b_id);
  }
  return true;
}

}  // namespace taeda::dnn
