// Rows of a table by index.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/embedding.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/embedding.h>
#include <taeda/gen/native/embedding_dense_backward.h>
#include <taeda/gen/native/embedding_renorm_.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace taeda::native {

namespace {

void check_in_range(const int64_t* index, int64_t count, int64_t rows) {
  for (int64_t i = 0; i < count; ++i) {
    TAEDA_CHECK_AS(Index,
                   index[i] >= 0 && index[i] < rows,
                   "embedding: index out of range in self: ",
                   index[i],
                   " with ",
                   rows,
                   " rows");
  }
}

template <class T>
void add_row(const T* from, T* to, lane_sum_t<T> scale, int64_t n) {
  using A = lane_sum_t<T>;
  if constexpr (std::is_same_v<T, A>) {
    if (scale == 1) return norm_kernels<T>().sum_rows(from, to, 1, n);
  }
  for (int64_t j = 0; j < n; ++j) {
    to[j] =
        static_cast<T>(static_cast<A>(to[j]) + static_cast<A>(from[j]) * scale);
  }
}

}  // namespace

void embedding_cpu(const Tensor& weight,
                   const Tensor& indices,
                   int64_t,
                   bool,
                   bool,
                   const Tensor& out) {
  bool dense_rows = weight.strides()[1] == 1 || weight.sizes()[1] == 1;
  bool plain = dense_rows && !weight.is_conj() && !weight.is_neg();
  Tensor table = plain ? weight : contiguous(weight);
  Tensor index = contiguous_as(indices, kLong);
  const int64_t* at = index.const_data<int64_t>();
  int64_t count = index.numel(), rows = table.sizes()[0];
  check_in_range(at, count, rows);
  size_t width = static_cast<size_t>(table.sizes()[1]) * table.itemsize();
  size_t step = static_cast<size_t>(table.strides()[0]) * table.itemsize();
  if (width == 0 || count == 0) return;
  const char* from = static_cast<const char*>(table.const_raw_data());
  char* to = static_cast<char*>(out.mutable_raw_data());
  int64_t grain = std::max<int64_t>(1, 65536 / static_cast<int64_t>(width));
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + static_cast<size_t>(i) * width,
                  from + static_cast<size_t>(at[i]) * step,
                  width);
    }
  });
}

void embedding_dense_backward_cpu(const Tensor& grad_output,
                                  const Tensor& indices,
                                  int64_t num_weights,
                                  int64_t padding_idx,
                                  bool scale_grad_by_freq,
                                  const Tensor& out) {
  fill_with(out, int64_t{0});
  Tensor index = contiguous_as(indices, kLong), g = contiguous(grad_output);
  const int64_t* at = index.const_data<int64_t>();
  int64_t count = index.numel(), width = out.sizes()[1];
  TAEDA_CHECK(
      g.numel() == count * width,
      "embedding_dense_backward: expected a row of grad_output for each "
      "index, got grad_output of ",
      g.sizes(),
      " and indices of ",
      indices.sizes());
  check_in_range(at, count, num_weights);
  std::vector<int64_t> uses;
  if (scale_grad_by_freq) {
    uses.resize(static_cast<size_t>(num_weights));
    for (int64_t i = 0; i < count; ++i) ++uses[static_cast<size_t>(at[i])];
  }
  visit_norm_type("embedding_backward", out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using A = lane_sum_t<T>;
    const T* from = g.const_data<T>();
    T* to = out.mutable_data<T>();
    // Each part owns a range of rows of the table.
    int64_t grain = std::max<int64_t>(
        1, 65536 * num_weights / std::max<int64_t>(count * width, 1));
    parallel_for(0, num_weights, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        int64_t row = at[i];
        if (row < begin || row >= end || row == padding_idx) continue;
        A scale = uses.empty()
                      ? A(1)
                      : A(1) / static_cast<A>(uses[static_cast<size_t>(row)]);
        add_row(from + i * width, to + row * width, scale, width);
      }
    });
  });
}

// Rows named by the indices whose norm is above the limit are scaled down.
void embedding_renorm_(const Tensor& self,
                       const Tensor& indices,
                       double max_norm,
                       double norm_type) {
  TAEDA_CHECK(self.dim() == 2, "embedding_renorm_: 'self' must be 2-D");
  check_indices("embedding_renorm_", indices);
  Tensor index = contiguous_as(indices, kLong);
  std::vector<int64_t> rows(index.const_data<int64_t>(),
                            index.const_data<int64_t>() + index.numel());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  check_in_range(
      rows.data(), static_cast<int64_t>(rows.size()), self.sizes()[0]);
  int64_t width = self.sizes()[1];
  int64_t step = self.strides()[0], inner = self.strides()[1];
  visit_norm_type("embedding_renorm_", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* data = self.mutable_data<T>();
    for (int64_t r : rows) {
      T* row = data + r * step;
      double norm = 0;
      for (int64_t j = 0; j < width; ++j) {
        double v = std::abs(
            static_cast<double>(static_cast<lane_sum_t<T>>(row[j * inner])));
        norm = std::isinf(norm_type) ? std::max(norm, v)
               : norm_type == 2      ? norm + v * v
                                     : norm + std::pow(v, norm_type);
      }
      if (!std::isinf(norm_type)) {
        norm = norm_type == 2 ? std::sqrt(norm) : std::pow(norm, 1 / norm_type);
      }
      if (norm <= max_norm) continue;
      double scale = max_norm / (norm + 1e-7);
      for (int64_t j = 0; j < width; ++j) {
        T& v = row[j * inner];
        v = static_cast<T>(static_cast<lane_sum_t<T>>(
            static_cast<double>(static_cast<lane_sum_t<T>>(v)) * scale));
      }
    }
  });
}

}  // namespace taeda::native
