#include <taeda/aten/native/linalg/matrices.h>

#include <taeda/aten/iter/copy.h>

namespace taeda::native {

Tensor new_matrices(std::string_view op,
                    IntArrayRef batch,
                    int64_t rows,
                    int64_t columns,
                    const Tensor& like) {
  ColumnMajor<int64_t> g(batch, rows, columns);
  return make_tensor_strided(
      op, g.sizes, g.strides, like.dtype(), like.device());
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
