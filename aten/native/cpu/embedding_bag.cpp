// Rows of a table, joined over bags of indices.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/row_sums.h>
#include <taeda/aten/native/embedding_bag.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_embedding_bag.h>
#include <taeda/gen/native/_embedding_bag_dense_backward.h>
#include <taeda/gen/native/_embedding_bag_per_sample_weights_backward.h>

#include <algorithm>
#include <vector>

namespace taeda::native {

namespace {

// Where bags begin and end in the indices.
struct Bags {
  std::vector<int64_t> begin;  // one more than bags
  int64_t count() const { return static_cast<int64_t>(begin.size()) - 1; }
};

Bags make_bags(const Tensor& offsets,
               int64_t count,
               bool include_last,
               bool pads) {
  Tensor at = contiguous_as(offsets, kLong);
  const int64_t* from = at.const_data<int64_t>();
  int64_t bags = bags_of(offsets, include_last);
  Bags found{{from, from + at.numel()}};
  if (!found.begin.empty()) {
    TAEDA_CHECK(found.begin[0] == 0,
                "offsets[0] has to be 0, i.e., the first sequence in the "
                "mini-batch has to start from position 0. However, got ",
                found.begin[0]);
    TAEDA_CHECK(found.begin.back() <= count,
                "offsets[-1] can not be greater than input's length(",
                count,
                ") but got offsets[-1] of ",
                found.begin.back());
  }
  found.begin.resize(static_cast<size_t>(bags) + 1);
  // With a padding index the last bag runs to the end in PyTorch, whatever the
  // last offset says.
  if (!include_last || (pads && bags > 0)) found.begin.back() = count;
  for (size_t b = 0; b < static_cast<size_t>(bags); ++b) {
    TAEDA_CHECK(found.begin[b] <= found.begin[b + 1],
                "embedding_bag: offsets must not fall, got ",
                found.begin[b],
                " before ",
                found.begin[b + 1]);
  }
  return found;
}

void check_rows(const int64_t* index, int64_t count, int64_t rows) {
  for (int64_t i = 0; i < count; ++i) {
    TAEDA_CHECK(index[i] >= 0 && index[i] < rows,
                "embedding_bag: Expected idx >= 0 && idx < num_embeddings but "
                "found idx to be ",
                index[i],
                " with ",
                rows,
                " embeddings");
  }
}

// One call's bags with plain pointers.
template <class T>
struct BagJob {
  const T* table;
  const T* factors;  // null without per_sample_weights
  const int64_t* index;
  int64_t width, padding;
};

template <class T>
int64_t sum_bag(
    const BagJob<T>& job, int64_t from, int64_t to, bool mean, T* out) {
  const int64_t* index = job.index + from;
  int64_t count = to - from;
  int64_t size = count - std::count(index, index + count, job.padding);
  TAEDA_ISA_TABLE(kRowSumTable)
      .of<T>()
      .sum_rows(job.table,
                job.width,
                index,
                job.factors == nullptr ? nullptr : job.factors + from,
                count,
                job.padding,
                mean ? std::max<int64_t>(size, 1) : 1,
                out);
  return size;
}

template <class T>
int64_t max_bag(
    const BagJob<T>& job, int64_t from, int64_t to, T* out, int64_t* where) {
  using A = lane_sum_t<T>;
  int64_t size = 0;
  for (int64_t i = from; i < to; ++i) {
    if (job.index[i] == job.padding) continue;
    const T* row = job.table + job.index[i] * job.width;
    for (int64_t j = 0; j < job.width; ++j) {
      bool more = static_cast<A>(row[j]) > static_cast<A>(out[j]);
      if (size == 0 || more) out[j] = row[j], where[j] = job.index[i];
    }
    ++size;
  }
  return size;
}

}  // namespace

void _embedding_bag_cpu(const Tensor& weight,
                        const Tensor& indices,
                        const Tensor& offsets,
                        bool,
                        int64_t mode,
                        bool,
                        const OptionalTensor& per_sample_weights,
                        bool include_last_offset,
                        int64_t padding_idx,
                        const Tensor& out0,
                        const Tensor& out1,
                        const Tensor& out2,
                        const Tensor& out3) {
  Bags bags = make_bags(
      offsets, indices.numel(), include_last_offset, padding_idx >= 0);
  Tensor table = contiguous(weight), index = contiguous_as(indices, kLong);
  Tensor factors;
  if (per_sample_weights) factors = contiguous(*per_sample_weights);
  const int64_t* at = index.const_data<int64_t>();
  check_rows(at, index.numel(), weight.sizes()[0]);
  int64_t* bag_of = out1.mutable_data<int64_t>();
  int64_t* sizes = out2.mutable_data<int64_t>();
  // Indices behind the last bag belong to none of them.
  std::fill(bag_of, bag_of + index.numel(), bags.count());
  fill_with(out0, int64_t{0});
  if (mode == kMax) fill_with(out3, int64_t{0});
  visit_norm_type("embedding_bag", weight.dtype(), [&](auto tag) {
    using T = decltype(tag);
    int64_t width = table.sizes()[1];
    BagJob<T> job{table.const_data<T>(),
                  factors.defined() ? factors.const_data<T>() : nullptr,
                  at,
                  width,
                  padding_idx};
    T* out = out0.mutable_data<T>();
    int64_t* where = mode == kMax ? out3.mutable_data<int64_t>() : nullptr;
    parallel_for(0, bags.count(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        int64_t from = bags.begin[static_cast<size_t>(b)];
        int64_t to = bags.begin[static_cast<size_t>(b) + 1];
        std::fill(bag_of + from, bag_of + to, b);
        T* row = out + b * width;
        if (mode == kMax) {
          sizes[b] = max_bag(job, from, to, row, where + b * width);
          continue;
        }
        sizes[b] = sum_bag(job, from, to, mode != kSum, row);
      }
    });
  });
}

void _embedding_bag_dense_backward_cpu(const Tensor& grad,
                                       const Tensor& indices,
                                       const Tensor& offset2bag,
                                       const Tensor& bag_size,
                                       const Tensor& maximum_indices,
                                       int64_t num_weights,
                                       bool scale_grad_by_freq,
                                       int64_t mode,
                                       const OptionalTensor& per_sample_weights,
                                       int64_t padding_idx,
                                       const Tensor& out) {
  // 16-bit gradients are added up in float.
  Tensor total = out;
  if (out.dtype() != compute_type(out.dtype())) {
    total = make_tensor(
        "embedding_bag_backward", out.sizes(), compute_type(out.dtype()));
  }
  fill_with(total, int64_t{0});
  Tensor g = contiguous(grad), index = contiguous_as(indices, kLong);
  Tensor bag = contiguous_as(offset2bag, kLong), factors;
  Tensor size = contiguous_as(bag_size, kLong);
  Tensor maxima = contiguous_as(maximum_indices, kLong);
  if (per_sample_weights) factors = contiguous(*per_sample_weights);
  int64_t bags = g.sizes()[0], width = g.sizes()[1], count = index.numel();
  const int64_t* at = index.const_data<int64_t>();
  const int64_t* bag_of = bag.const_data<int64_t>();
  const int64_t* sizes = size.const_data<int64_t>();
  check_rows(at, count, num_weights);
  for (int64_t i = 0; i < count; ++i) {
    TAEDA_CHECK_AS(Index,
                   bag_of[i] >= 0,
                   "embedding_bag_backward: bags count from 0, got ",
                   bag_of[i]);
  }
  std::vector<int64_t> uses(static_cast<size_t>(num_weights));
  for (int64_t i = 0; i < count; ++i) ++uses[static_cast<size_t>(at[i])];
  visit_norm_type("embedding_bag_backward", g.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using A = lane_sum_t<T>;
    const T* from = g.const_data<T>();
    A* to = total.mutable_data<A>();
    if (mode == kMax) {
      const int64_t* where = maxima.const_data<int64_t>();
      for (int64_t e = 0; e < bags * width; ++e) {
        if (sizes[e / width] == 0) continue;
        check_rows(where + e, 1, num_weights);
        to[where[e] * width + e % width] += static_cast<A>(from[e]);
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      if (at[i] == padding_idx || bag_of[i] >= bags) continue;
      A scale =
          factors.defined() ? static_cast<A>(factors.const_data<T>()[i]) : A(1);
      if (mode == kMean) scale /= static_cast<A>(sizes[bag_of[i]]);
      if (scale_grad_by_freq) {
        scale /= static_cast<A>(uses[static_cast<size_t>(at[i])]);
      }
      const T* __restrict row = from + bag_of[i] * width;
      A* __restrict sum = to + at[i] * width;
      for (int64_t j = 0; j < width; ++j) {
        sum[j] += scale * static_cast<A>(row[j]);
      }
    }
  });
  if (!total.is_same(out)) copy_into(out, total);
}

void _embedding_bag_per_sample_weights_backward_cpu(const Tensor& grad,
                                                    const Tensor& weight,
                                                    const Tensor& indices,
                                                    const Tensor&,
                                                    const Tensor& offset2bag,
                                                    int64_t,
                                                    int64_t padding_idx,
                                                    const Tensor& out) {
  Tensor g = contiguous(grad), table = contiguous(weight);
  Tensor index = contiguous_as(indices, kLong), bag = contiguous(offset2bag);
  int64_t bags = g.sizes()[0], width = g.sizes()[1];
  const int64_t* at = index.const_data<int64_t>();
  const int64_t* bag_of = bag.const_data<int64_t>();
  visit_norm_type("embedding_bag_backward", g.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using A = lane_sum_t<T>;
    const T* from = g.const_data<T>();
    const T* rows = table.const_data<T>();
    T* to = out.mutable_data<T>();
    parallel_for(0, index.numel(), 512, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        A sum = 0;
        if (at[i] != padding_idx && bag_of[i] < bags) {
          TAEDA_CHECK_AS(Index,
                         bag_of[i] >= 0 && at[i] >= 0 && at[i] < table.size(0),
                         "embedding_bag_backward: index ",
                         at[i],
                         " in bag ",
                         bag_of[i],
                         " is out of range");
          const T* a = from + bag_of[i] * width;
          const T* b = rows + at[i] * width;
          for (int64_t j = 0; j < width; ++j) {
            sum += static_cast<A>(a[j]) * static_cast<A>(b[j]);
          }
        }
        to[i] = static_cast<T>(sum);
      }
    });
  });
}

}  // namespace taeda::native
