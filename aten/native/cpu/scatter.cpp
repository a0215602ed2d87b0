// gather, scatter and its reductions.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/aten/native/scatter.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/gather.h>
#include <taeda/gen/native/scatter.h>
#include <taeda/gen/native/scatter_add.h>
#include <taeda/gen/native/scatter_reduce.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace taeda::native {

namespace {

constexpr int64_t kGrain = 8192;

DimVector ranked(IntArrayRef sizes) {
  return sizes.empty() ? DimVector{1} : DimVector(sizes);
}

// The rows (along the last dim) of an index, with the offsets of their first
// elements in tensors of two more geometries.
struct Rows {
  DimVector sizes;  // of the index
  DimVector a, b;   // strides; 0 where the index itself decides
  int64_t count = 1, width;

  Rows(IntArrayRef index, IntArrayRef first, IntArrayRef second)
      : sizes(ranked(index)),
        a(contiguous_strides(ranked(first))),
        b(contiguous_strides(ranked(second))) {
    width = sizes.back();
    for (size_t d = 0; d + 1 < sizes.size(); ++d) count *= sizes[d];
  }
  template <class F>
  void run(int64_t begin, int64_t end, F&& f) const {
    for (int64_t row = begin; row < end; ++row) {
      int64_t left = row, first = 0, second = 0;
      for (size_t d = sizes.size() - 1; d-- > 0;) {
        int64_t at = left % sizes[d];
        left /= sizes[d];
        first += at * a[d];
        second += at * b[d];
      }
      f(row, first, second);
    }
  }
};

[[noreturn]] void out_of_bounds(int64_t p, int64_t dim, int64_t size) {
  throw_error(ErrorKind::Runtime,
              str_cat("index ",
                      p,
                      " is out of bounds for dimension ",
                      dim,
                      " with size ",
                      size));
}

void check_positions(const Tensor& index, int64_t dim, int64_t size) {
  const int64_t* p = index.const_data<int64_t>();
  // The sign of either difference tells that one is outside.
  typedef uint64_t Two __attribute__((vector_size(16), aligned(8), may_alias));
  int64_t n = index.numel(), i = 0;
  const uint64_t last = static_cast<uint64_t>(size) - 1;
  Two signs = {};
  for (; i + 2 <= n; i += 2) {
    Two at = *reinterpret_cast<const Two*>(p + i);
    signs |= at | (last - at);
  }
  if ((signs[0] | signs[1]) >> 63 != 0) i = 0;
  for (; i < n; ++i) {
    if (p[i] < 0 || p[i] >= size) out_of_bounds(p[i], dim, size);
  }
}

int64_t dim_size(IntArrayRef sizes, int64_t dim) {
  return sizes.empty() ? 1 : sizes[dim];
}

// Calls f(step, along): an element's place is i * step + index * along. Both
// are constants along the last dim, where no products are left.
template <class F>
void visit_steps(int64_t step, int64_t along, F&& f) {
  using std::integral_constant;
  if (step == 0 && along == 1) {
    return f(integral_constant<int64_t, 0>{}, integral_constant<int64_t, 1>{});
  }
  f(step, along);
}

}  // namespace

void gather_cpu(const Tensor& self,
                int64_t dim,
                const Tensor& index,
                bool,
                const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, self.dim());
  Tensor at = contiguous_as(index, kLong), from = contiguous(self);
  int64_t size = dim_size(self.sizes(), dim);
  Rows rows(at.sizes(), self.sizes(), at.sizes());
  int64_t along = rows.a[dim];
  rows.a[dim] = 0;
  int64_t step = rows.a.back();
  const int64_t* positions = at.const_data<int64_t>();
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = static_cast<const T*>(from.const_raw_data());
    T* to = static_cast<T*>(out.mutable_raw_data());
    parallel_for(
        0, rows.count, kGrain / rows.width + 1, [&](int64_t b, int64_t e) {
          rows.run(b, e, [&](int64_t row, int64_t base, int64_t) {
            const int64_t* __restrict p = positions + row * rows.width;
            T* __restrict line = to + row * rows.width;
            const T* __restrict from_row = in + base;
            visit_steps(step, along, [&](auto s, auto a) {
#pragma GCC unroll 4
              for (int64_t i = 0; i < rows.width; ++i) {
                if (static_cast<uint64_t>(p[i]) >=
                    static_cast<uint64_t>(size)) {
                  out_of_bounds(p[i], dim, size);
                }
                line[i] = from_row[i * s + p[i] * a];
              }
            });
          });
        });
  });
}

namespace {

// write(place, value, offset) in the order of index; src may be one element.
template <class T, class F>
void scatter_elements(const Tensor& work,
                      int64_t dim,
                      const Tensor& at,
                      const Tensor& src,
                      bool one,
                      F&& write) {
  Tensor values = contiguous(src);
  Rows rows(at.sizes(), work.sizes(), one ? at.sizes() : src.sizes());
  int64_t along = rows.a[dim];
  rows.a[dim] = 0;
  int64_t step = rows.a.back(), src_step = one ? 0 : rows.b.back();
  if (one) std::fill(rows.b.begin(), rows.b.end(), 0);
  const int64_t* positions = at.const_data<int64_t>();
  const T* in = static_cast<const T*>(values.const_raw_data());
  T* to = static_cast<T*>(work.mutable_raw_data());
  rows.run(0, rows.count, [&](int64_t row, int64_t base, int64_t src_base) {
    const int64_t* p = positions + row * rows.width;
    const T* value = in + src_base;
    visit_steps(step, along, [&](auto s, auto a) {
      for (int64_t i = 0; i < rows.width; ++i) {
        int64_t place = base + i * s + p[i] * a;
        write(to[place], *value, place);
        value += src_step;
      }
    });
  });
}

Tensor checked_index(const Tensor& self, int64_t dim, const Tensor& index) {
  Tensor at = contiguous_as(index, kLong);
  check_positions(at, dim, dim_size(self.sizes(), dim));
  return at;
}

void assign(const Tensor& self,
            int64_t dim,
            const Tensor& index,
            const Tensor& src,
            bool one) {
  if (index.numel() == 0) return;
  Tensor at = checked_index(self, dim, index);
  WorkingCopy work(self);
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    scatter_elements<T>(
        work.tensor(), dim, at, src, one, [](T& place, T value, int64_t) {
          place = value;
        });
  });
  work.finish();
}

// Without branches; NaN stays.
template <class T>
T larger_of(T a, T b) {
  T larger = a < b ? b : a;
  return b != b ? b : larger;
}
template <class T>
T smaller_of(T a, T b) {
  T smaller = b < a ? b : a;
  return b != b ? b : smaller;
}

template <Reduce kHow, class T>
T combined(T a, T b) {
  if constexpr (kHow == Reduce::Prod) {
    return product_of<T>(a, b);
  } else if constexpr (kHow == Reduce::Sum) {
    return sum_of<T>(a, b);
  } else if constexpr (requires { a < b; }) {
    return kHow == Reduce::Max ? larger_of<T>(a, b) : smaller_of<T>(a, b);
  } else {
    throw_error(ErrorKind::NotImplemented,
                "scatter_reduce: complex numbers have no order");
  }
}

// Calls f with the reduction as a constant; a mean is a sum first.
template <class F>
void visit_reduce(Reduce how, F&& f) {
  using enum Reduce;
  switch (how) {
    case Prod:
      return f(std::integral_constant<Reduce, Prod>{});
    case Max:
      return f(std::integral_constant<Reduce, Max>{});
    case Min:
      return f(std::integral_constant<Reduce, Min>{});
    default:
      return f(std::integral_constant<Reduce, Sum>{});
  }
}

// PyTorch divides integers towards minus infinity.
template <class T>
T divided(T v, int64_t n) {
  if constexpr (std::is_same_v<T, bool>) {
    return v;
  } else if constexpr (std::is_integral_v<T>) {
    int64_t wide = static_cast<int64_t>(v), q = wide / n;
    return static_cast<T>(q - (wide % n != 0 && wide < 0 ? 1 : 0));
  } else if constexpr (requires { v.imag(); }) {
    using R = typename T::value_type;
    double d = static_cast<double>(n);
    return T(R(double(v.real()) / d), R(double(v.imag()) / d));
  } else {
    return T(static_cast<double>(v) / static_cast<double>(n));
  }
}

template <class T>
void reduce_into(const Tensor& work,
                 int64_t dim,
                 const Tensor& at,
                 const Tensor& src,
                 bool one,
                 Reduce how,
                 bool include_self) {
  // How many elements a place has got; only kept where it matters.
  bool counted = how == Reduce::Mean || !include_self;
  std::vector<int64_t> counts;
  if (counted) {
    counts.assign(static_cast<size_t>(work.numel()), include_self ? 1 : 0);
  }
  visit_reduce(how, [&](auto by) {
    auto put = [&](T& place, T value, int64_t where) {
      bool fresh = counted && counts[static_cast<size_t>(where)]++ == 0;
      place = fresh ? value : combined<by(), T>(place, value);
    };
    auto put_all = [&](T& place, T value, int64_t) {
      place = combined<by(), T>(place, value);
    };
    if (counted) return scatter_elements<T>(work, dim, at, src, one, put);
    scatter_elements<T>(work, dim, at, src, one, put_all);
  });
  if (how != Reduce::Mean) return;
  T* data = work.mutable_data<T>();
  for (size_t i = 0; i < counts.size(); ++i) {
    data[i] = divided<T>(data[i], std::max<int64_t>(counts[i], 1));
  }
}

void reduce_elements(const Tensor& self,
                     int64_t dim,
                     const Tensor& index,
                     const Tensor& src,
                     bool one,
                     Reduce how,
                     bool include_self) {
  if (index.numel() == 0) return;
  Tensor at = checked_index(self, dim, index);
  WorkingCopy work(self);
  visit_type(self.dtype(), [&](auto tag) {
    reduce_into<decltype(tag)>(
        work.tensor(), dim, at, src, one, how, include_self);
  });
  work.finish();
}

Tensor element_of(const Tensor& self, const Scalar& value) {
  Tensor one = make_tensor("scatter", {}, self.dtype());
  value.store(self.dtype(), one.mutable_raw_data());
  return one;
}

}  // namespace

void scatter_reduced(const Tensor& self,
                     int64_t dim,
                     const Tensor& index,
                     const Tensor& src,
                     std::string_view reduce,
                     bool include_self) {
  reduce_elements(
      self, dim, index, src, false, reduce_of(reduce), include_self);
}

void scatter_src_cpu(const Tensor& self,
                     int64_t dim,
                     const Tensor& index,
                     const Tensor& src,
                     const Tensor& out) {
  assign(out, wrap_dim(dim, self.dim()), index, src, false);
}

void scatter_value_cpu(const Tensor& self,
                       int64_t dim,
                       const Tensor& index,
                       const Scalar& value,
                       const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  assign(out, dim, index, element_of(self, value), true);
}

void scatter_src_old_cpu(const Tensor& self,
                         int64_t dim,
                         const Tensor& index,
                         const Tensor& src,
                         std::string_view reduce,
                         const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  reduce_elements(out, dim, index, src, false, old_reduce_of(reduce), true);
}

void scatter_value_old_cpu(const Tensor& self,
                           int64_t dim,
                           const Tensor& index,
                           const Scalar& value,
                           std::string_view reduce,
                           const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  Tensor one = element_of(self, value);
  reduce_elements(out, dim, index, one, true, old_reduce_of(reduce), true);
}

void scatter_add_cpu(const Tensor& self,
                     int64_t dim,
                     const Tensor& index,
                     const Tensor& src,
                     const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  reduce_elements(out, dim, index, src, false, Reduce::Sum, true);
}

void scatter_reduce_cpu(const Tensor& self,
                        int64_t dim,
                        const Tensor& index,
                        const Tensor& src,
                        std::string_view reduce,
                        bool include_self,
                        const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  reduce_elements(out, dim, index, src, false, reduce_of(reduce), include_self);
}

}  // namespace taeda::native
