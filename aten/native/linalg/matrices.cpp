#include <taeda/aten/native/linalg/matrices.h>

#include <taeda/aten/iter/copy.h>

namespace taeda::native {

void check_matrices(std::string_view op, const Tensor& t) {
  TAEDA_CHECK(t.dim() >= 2,
              op,
              ": The input tensor A must have at least 2 dimensions, got ",
              t.sizes());
  ScalarType d = t.dtype();
  TAEDA_CHECK(
      d == kFloat || d == kDouble || d == kComplexFloat || d == kComplexDouble,
      op,
      ": Expected a floating point or complex tensor as input. Got ",
      d);
  constexpr int64_t kMost = std::numeric_limits<blas::Int>::max();
  TAEDA_CHECK(t.size(-2) <= kMost && t.size(-1) <= kMost,
              op,
              ": LAPACK takes matrices of at most 2^31 - 1 rows, got ",
              t.sizes());
}

void check_square(std::string_view op, const Tensor& t) {
  check_matrices(op, t);
  TAEDA_CHECK(t.size(-2) == t.size(-1),
              op,
              ": A must be batches of square matrices, but they are ",
              t.size(-2),
              " by ",
              t.size(-1),
              " matrices");
}

namespace {

struct Geometry {
  DimVector sizes, strides;
};

Geometry column_major_geometry(IntArrayRef batch,
                               int64_t rows,
                               int64_t columns) {
  DimVector sizes(batch);
  sizes.push_back(rows);
  sizes.push_back(columns);
  DimVector flipped(batch);
  flipped.push_back(columns);
  flipped.push_back(rows);
  DimVector strides = contiguous_strides(flipped);
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return {sizes, strides};
}

}  // namespace

Tensor new_matrices(std::string_view op,
                    IntArrayRef batch,
                    int64_t rows,
                    int64_t columns,
                    const Tensor& like) {
  Geometry g = column_major_geometry(batch, rows, columns);
  return make_tensor_strided(
      op, g.sizes, g.strides, like.dtype(), like.device());
}

void plan_matrices(OutputPlan& plan,
                   size_t index,
                   IntArrayRef batch,
                   int64_t rows,
                   int64_t columns,
                   ScalarType dtype) {
  Geometry g = column_major_geometry(batch, rows, columns);
  plan.set(index, g.sizes, g.strides, dtype);
}

Tensor column_major(std::string_view op, const Tensor& t) {
  Tensor out = new_matrices(op, batch_sizes(t), t.size(-2), t.size(-1), t);
  copy_into(out, t);
  return out;
}

Tensor new_infos(std::string_view op, const Tensor& a) {
  Tensor info = make_tensor(op, batch_sizes(a), kInt, a.device());
  fill_with(info, Scalar(0));
  return info;
}

int64_t first_failure(const Tensor& info) {
  if (info.is_meta()) return -1;
  const int* values = info.const_data<int>();
  for (int64_t i = 0, n = info.numel(); i < n; ++i) {
    if (values[i] != 0) return i;
  }
  return -1;
}

}  // namespace taeda::native
