// max, min, argmax, argmin, aminmax, and the derivative of those that choose an
// element.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/extrema.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/argmax.h>
#include <taeda/gen/native/argmin.h>
#include <taeda/gen/native/max.h>
#include <taeda/gen/native/min.h>
#include <taeda/gen/native/value_selecting_reduction_backward.h>

#include <algorithm>
#include <vector>

namespace taeda::native {

namespace {

constexpr int64_t kGrain = 32768;

template <class T>
const ExtremumKernels<T>& kernels() {
  static const ExtremumTable& table = TAEDA_ISA_TABLE(kExtremumTable);
  if constexpr (std::is_same_v<T, float>) {
    return table.f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return table.f64;
  } else {
    return table.i64;
  }
}

// One long row in parts of fixed length.
template <class T>
int64_t long_row(const T* in, int64_t n, bool largest) {
  constexpr int64_t length = 8 * kGrain;
  int64_t parts = (n + length - 1) / length;
  if (parts <= 1) return kernels<T>().row(in, n, largest);
  std::vector<int64_t> places(static_cast<size_t>(parts));
  std::vector<T> values(static_cast<size_t>(parts));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t at = p * length, count = std::min(length, n - at);
      int64_t found = at + kernels<T>().row(in + at, count, largest);
      places[static_cast<size_t>(p)] = found;
      values[static_cast<size_t>(p)] = in[found];
    }
  });
  int64_t part = kernels<T>().row(values.data(), parts, largest);
  return places[static_cast<size_t>(part)];
}

template <class T>
void search(const AlongDim& f, bool largest, T* values, int64_t* indices) {
  const T* in = f.in<T>();
  const ExtremumKernels<T>& k = kernels<T>();
  if (f.inner == 1) {
    int64_t grain = std::max<int64_t>(1, kGrain / f.n);
    parallel_for(0, f.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* row = in + o * f.n;
        int64_t at = f.outer == 1 ? long_row(row, f.n, largest)
                                  : k.row(row, f.n, largest);
        indices[o] = at;
        if (values != nullptr) values[o] = row[at];
      }
    });
    return;
  }
  int64_t width = std::min(f.inner, kExtremumColumns);
  int64_t blocks = (f.inner + width - 1) / width;
  int64_t grain = std::max<int64_t>(1, kGrain / (f.n * width));
  parallel_for(0, f.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    T unused[kExtremumColumns];
    for (int64_t b = begin; b < end; ++b) {
      int64_t outer = b / blocks, first = (b % blocks) * width;
      int64_t at = outer * f.inner + first;
      k.columns(in + outer * f.n * f.inner + first,
                f.n,
                f.inner,
                std::min(width, f.inner - first),
                largest,
                values != nullptr ? values + at : unused,
                indices + at);
    }
  });
}

template <class F>
void visit_compute(ScalarType t, F&& f) {
  if (t == kFloat) return f(float{});
  return t == kDouble ? f(double{}) : f(int64_t{});
}

// `values` may be undefined.
void search_dim(const Tensor& self,
                int64_t dim,
                bool largest,
                const Tensor& values,
                const Tensor& indices) {
  if (indices.numel() == 0) return;
  ScalarType type = wide_type(self.dtype());
  AlongDim f = along_dim(self, dim, type);
  bool direct = values.defined() && values.dtype() == type;
  Tensor found = values;
  if (values.defined() && !direct) {
    found = make_tensor("max", values.sizes(), type);
  }
  visit_compute(type, [&](auto tag) {
    using T = decltype(tag);
    search<T>(f,
              largest,
              found.defined() ? found.mutable_data<T>() : nullptr,
              indices.mutable_data<int64_t>());
  });
  if (values.defined() && !direct) copy_into(values, found);
}

void find_place(const Tensor& self,
                std::optional<int64_t> dim,
                bool largest,
                const Tensor& out) {
  if (dim) return search_dim(self, *dim, largest, Tensor(), out);
  DimVector flat = {self.numel()};
  Tensor row = contiguous(self);
  row = make_view(row, flat, DimVector{1}, row.storage_offset());
  search_dim(row, 0, largest, Tensor(), out);
}

}  // namespace

void max_dim_cpu(const Tensor& self,
                 int64_t dim,
                 bool,
                 const Tensor& values,
                 const Tensor& indices) {
  search_dim(self, dim, /*largest=*/true, values, indices);
}
void argmax_cpu(const Tensor& self,
                std::optional<int64_t> dim,
                bool,
                const Tensor& out) {
  find_place(self, dim, /*largest=*/true, out);
}
void min_dim_cpu(const Tensor& self,
                 int64_t dim,
                 bool,
                 const Tensor& values,
                 const Tensor& indices) {
  search_dim(self, dim, /*largest=*/false, values, indices);
}
void argmin_cpu(const Tensor& self,
                std::optional<int64_t> dim,
                bool,
                const Tensor& out) {
  find_place(self, dim, /*largest=*/false, out);
}

namespace {

template <class T>
void add_at(const AlongDim& grad, const int64_t* index, int64_t n, T* out) {
  const T* g = grad.in<T>();
  for (int64_t o = 0; o < grad.outer; ++o) {
    for (int64_t k = 0; k < grad.n; ++k) {
      for (int64_t i = 0; i < grad.inner; ++i, ++g, ++index) {
        TAEDA_CHECK(*index >= 0 && *index < n,
                    "index ",
                    *index,
                    " is out of bounds for a dimension of size ",
                    n);
        T& sum = out[(o * n + *index) * grad.inner + i];
        sum = sum_of<T>(sum, *g);
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
