// What indexing kernels share.
#pragma once

#include <taeda/aten/core/tensor_base.h>

#include <vector>

namespace taeda::native {

// Note [Blocks of elements]
// Reading and writing elements depends on their size alone; only adding and
// reducing look at the type. visit_size calls f with an integer type (or a pair
// of them) of the given size.
struct Wide {
  uint64_t low, high;
};
template <class F>
decltype(auto) visit_size(size_t size, F&& f) {
  switch (size) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Wide{});
  }
}

// a + b in the type that sums of T are made in.
template <class T>
inline T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(a + b);
  } else if constexpr (requires { a.imag(); }) {
    using R = typename T::value_type;
    return T(sum_of<R>(a.real(), b.real()), sum_of<R>(a.imag(), b.imag()));
  } else {
    return T(static_cast<float>(a) + static_cast<float>(b));
  }
}
template <class T>
inline T product_of(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(a * b);
  } else if constexpr (requires { a.imag(); }) {
    complex<double> x(double(a.real()), double(a.imag()));
    complex<double> y(double(b.real()), double(b.imag()));
    complex<double> z = x * y;
    using R = typename T::value_type;
    return T(R(z.real()), R(z.imag()));
  } else {
    return T(static_cast<float>(a) * static_cast<float>(b));
  }
}

// A contiguous tensor to write into, brought back to `target` at the end if it
// is not the target itself.
class WorkingCopy {
 public:
  explicit WorkingCopy(const Tensor& target);
  const Tensor& tensor() const { return work_; }
  void finish() const;

 private:
  Tensor target_;
  Tensor work_;
};

// The tensor seen as [outer, size, inner] around a dim.
struct AroundDim {
  int64_t outer = 1, size = 1, inner = 1;
  AroundDim(IntArrayRef sizes, int64_t dim) {
    int64_t rank = static_cast<int64_t>(sizes.size());
    if (rank == 0) return;
    for (int64_t d = 0; d < dim; ++d) outer *= sizes[d];
    size = sizes[dim];
    for (int64_t d = dim + 1; d < rank; ++d) inner *= sizes[d];
  }
};

// The positions of true elements: [count, dim], dim after dim in memory.
Tensor positions_of(const Tensor& mask);

}  // namespace taeda::native
