// The derivative of picking elements along a dim.
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/gen/native/value_selecting_reduction_backward.h>

namespace taeda::native {

namespace {

template <class T>
void add_at(const AlongDim& grad, const int64_t* index, int64_t n, T* out) {
  const T* g = grad.in<T>();
  for (int64_t o = 0; o < grad.outer; ++o) {
    for (int64_t k = 0; k < grad.n; ++k) {
      for (int64_t i = 0; i < grad.inner; ++i, ++g, ++index) {
        out[(o * n + *index) * grad.inner + i] += *g;
      }
    }
  }
}

// A dim of size 1 put back.
Tensor with_dim(const Tensor& t, int64_t dim) {
  DimVector sizes(t.sizes()), strides(t.strides());
  sizes.insert(sizes.begin() + dim, 1);
  strides.insert(strides.begin() + dim, 1);
  return make_view(t, sizes, strides, t.storage_offset());
}

}  // namespace

template <class I>
void value_selecting_reduction_backward_shape(const Spec<I>& grad,
                                              int64_t dim,
                                              const Spec<I>& indices,
                                              ArrayRef<I> sizes,
                                              bool keepdim,
                                              Plan<I>& plan) {
  int64_t rank = static_cast<int64_t>(sizes.size());
  int64_t at = wrap_dim(dim, rank);
  bool gone = !keepdim && rank > 0;
  constexpr std::string_view kName = "value_selecting_reduction_backward";
  check_index_dtype(kName, indices);
  check_shape(kName, "indices", indices, grad.sizes());
  Dims<I> kept(sizes);
  if (gone) kept.erase(kept.begin() + at);
  TAEDA_CHECK(grad.dim() == static_cast<int64_t>(kept.size()),
              kName,
              ": expected a gradient with ",
              kept.size(),
              " dims, got ",
              grad.sizes());
  for (int64_t d = 0; d < grad.dim(); ++d) {
    TAEDA_CHECK(
        (!gone && d == at) || grad.sizes()[d] == kept[static_cast<size_t>(d)],
        kName,
        ": expected a gradient of shape ",
        ArrayRef<I>(kept),
        ", got ",
        grad.sizes());
  }
  plan.set(0, sizes, grad.dtype());
}
TAEDA_SHAPE(value_selecting_reduction_backward_shape);

void value_selecting_reduction_backward_cpu(const Tensor& grad,
                                            int64_t dim,
                                            const Tensor& indices,
                                            IntArrayRef sizes,
                                            bool keepdim,
                                            const Tensor& out) {
  int64_t rank = static_cast<int64_t>(sizes.size());
  int64_t at = wrap_dim(dim, rank);
  Tensor plain = contiguous(grad), where = contiguous(indices);
  Tensor g = !keepdim && rank > 0 ? with_dim(plain, at) : plain;
  ScalarType type = wide_type(grad.dtype());
  Tensor sums = type == out.dtype() ? out : make_tensor("add", sizes, type);
  fill_with(sums, Scalar(0));
  AlongDim frame = along_dim(g, at, type);
  int64_t n = rank == 0 ? 1 : sizes[static_cast<size_t>(at)];
  const int64_t* index = where.const_data<int64_t>();
  visit_type(type, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, float> ||
                  std::is_same_v<T, double> ||
                  std::is_same_v<T, complex<float>> ||
                  std::is_same_v<T, complex<double>>) {
      add_at<T>(frame, index, n, sums.mutable_data<T>());
    }
  });
  if (!sums.is_same(out)) copy_into(out, sums);
}

}  // namespace taeda::native
