// max, min, argmax, argmin, aminmax.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/iter/reduce.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/extrema.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_aminmax.h>
#include <taeda/gen/native/amax.h>
#include <taeda/gen/native/amin.h>
#include <taeda/gen/native/aminmax.h>
#include <taeda/gen/native/argmax.h>
#include <taeda/gen/native/argmin.h>
#include <taeda/gen/native/max.h>
#include <taeda/gen/native/min.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/reshape.h>

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

template <class I>
void plan_place(std::string_view op,
                const Spec<I>& self,
                std::optional<int64_t> dim,
                bool keepdim,
                Plan<I>& plan) {
  if (dim) wrap_dim(*dim, self.dim());
  refuse_unordered(op, self.dtype());
  if (dim) {
    check_not_empty(op, self, *dim);
    return plan.set(0, without_dim(self.sizes(), *dim, keepdim), kLong);
  }
  TAEDA_CHECK_AS(Index,
                 self.numel() > 0,
                 op,
                 "(): Expected reduction dim to be specified for input.numel() "
                 "== 0. Specify the reduction dim with the 'dim' argument.");
  plan.set(0, Dims<I>(keepdim ? self.sizes().size() : 0, I(1)), kLong);
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

void check_any(std::string_view op, const Tensor& self) {
  TAEDA_CHECK(self.numel() > 0,
              op,
              "(): Expected reduction dim to be specified for input.numel() == "
              "0. Specify the reduction dim with the 'dim' argument.");
}

}  // namespace

void check_extremum(const Tensor& self, IntArrayRef dim, bool) {
  TAEDA_CHECK(self.numel() > 0 || !dim.empty(),
              "amax(), amin(): Expected reduction dim to be specified for "
              "input.numel() == 0. Specify the reduction dim with the 'dim' "
              "argument.");
}

Tensor max_all(const Tensor& self) {
  check_any("max", self);
  return ops::amax(self, IntArrayRef(), false);
}
Tensor min_all(const Tensor& self) {
  check_any("min", self);
  return ops::amin(self, IntArrayRef(), false);
}
template <class I>
void max_dim_shape(const Spec<I>& self,
                   int64_t dim,
                   bool keepdim,
                   Plan<I>& plan) {
  plan_choice("max", self, dim, keepdim, plan);
}
TAEDA_SHAPE(max_dim_shape);
void max_dim_cpu(const Tensor& self,
                 int64_t dim,
                 bool,
                 const Tensor& values,
                 const Tensor& indices) {
  search_dim(self, dim, /*largest=*/true, values, indices);
}

template <class I>
void argmax_shape(const Spec<I>& self,
                  std::optional<int64_t> dim,
                  bool keepdim,
                  Plan<I>& plan) {
  plan_place("argmax", self, dim, keepdim, plan);
}
TAEDA_SHAPE(argmax_shape);
void argmax_cpu(const Tensor& self,
                std::optional<int64_t> dim,
                bool,
                const Tensor& out) {
  find_place(self, dim, /*largest=*/true, out);
}

template <class I>
void min_dim_shape(const Spec<I>& self,
                   int64_t dim,
                   bool keepdim,
                   Plan<I>& plan) {
  plan_choice("min", self, dim, keepdim, plan);
}
TAEDA_SHAPE(min_dim_shape);
void min_dim_cpu(const Tensor& self,
                 int64_t dim,
                 bool,
                 const Tensor& values,
                 const Tensor& indices) {
  search_dim(self, dim, /*largest=*/false, values, indices);
}

template <class I>
void argmin_shape(const Spec<I>& self,
                  std::optional<int64_t> dim,
                  bool keepdim,
                  Plan<I>& plan) {
  plan_place("argmin", self, dim, keepdim, plan);
}
TAEDA_SHAPE(argmin_shape);
void argmin_cpu(const Tensor& self,
                std::optional<int64_t> dim,
                bool,
                const Tensor& out) {
  find_place(self, dim, /*largest=*/false, out);
}

std::tuple<Tensor, Tensor> aminmax(const Tensor& self,
                                   std::optional<int64_t> dim,
                                   bool keepdim) {
  if (dim) {
    int64_t dims[] = {*dim};
    return {ops::amin(self, IntArrayRef(dims), keepdim),
            ops::amax(self, IntArrayRef(dims), keepdim)};
  }
  TAEDA_CHECK(self.numel() > 0,
              "aminmax(): cannot compute aminmax over an empty dimension as "
              "the operation has no identity.");
  Tensor low = ops::amin(self, IntArrayRef(), keepdim);
  return {low, ops::amax(self, IntArrayRef(), keepdim)};
}
void aminmax_out(const Tensor& self,
                 std::optional<int64_t> dim,
                 bool keepdim,
                 const Tensor& min,
                 const Tensor& max) {
  for (const Tensor* out : {&min, &max}) {
    TAEDA_CHECK(out->dtype() == self.dtype(),
                "aminmax: Expected out tensor to have dtype ",
                self.dtype(),
                ", but got ",
                out->dtype(),
                " instead");
  }
  auto [low, high] = aminmax(self, dim, keepdim);
  write_out("aminmax", low, min);
  write_out("aminmax", high, max);
}
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self) {
  return aminmax(self, std::nullopt, false);
}
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self,
                                    int64_t dim,
                                    bool keepdim) {
  return aminmax(self, dim, keepdim);
}

}  // namespace taeda::native
