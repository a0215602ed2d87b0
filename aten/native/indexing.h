// What indexing kernels share.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>

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

// a + b in the type that sums of T are made in; those of integers wrap.
template <class T>
inline T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return a + b;
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
  } else if constexpr (std::is_integral_v<T>) {
    // Not through the promoted int: 65535 * 65535 overflows it.
    using U = decltype(std::make_unsigned_t<T>(0) + 0u);
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return a * b;
  } else if constexpr (requires { a.imag(); }) {
    using R = typename T::value_type;
    using S = std::conditional_t<std::is_same_v<R, double>, double, float>;
    complex<S> x(S(a.real()), S(a.imag())), y(S(b.real()), S(b.imag()));
    complex<S> z = x * y;
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

template <class T>
bool is_mask(const T& t) {
  return t.dtype() == kBool || t.dtype() == kByte;
}

// Masks of bytes are an old form of masks of bools.
void warn_of_bytes(ArrayRef<OptionalTensor> indices);

void check_mask(const Tensor& self, const Tensor& mask, size_t at);
// The same indices, the positions of masks in their place. Waits for a device.
TAEDA_API SmallVector<OptionalTensor, 6> with_positions(
    const Tensor& self, ArrayRef<OptionalTensor> indices);

void check_count(const auto& self, size_t count) {
  TAEDA_CHECK_AS(Index,
                 static_cast<int64_t>(count) <= self.dim(),
                 "too many indices for tensor of dimension ",
                 self.dim(),
                 " (got ",
                 count,
                 ")");
}

template <class I, class T>
Dims<I> common_shape(ArrayRef<T> indices) {
  Dims<I> shape;
  for (const T& t : indices) {
    if (!t.defined()) continue;
    size_t rank = std::max(shape.size(), t.sizes().size());
    while (shape.size() < rank) shape.insert(shape.begin(), 1);
    size_t shift = rank - t.sizes().size();
    for (size_t d = shift; d < rank; ++d) {
      const I& own = t.sizes()[d - shift];
      if (!(shape[d] == own || shape[d] == 1 || own == 1)) {
        std::string shapes;
        for (const T& u : indices) {
          if (!u.defined()) continue;
          if (!shapes.empty()) shapes += ", ";
          append_to(shapes, u.sizes());
        }
        throw_error(ErrorKind::Index,
                    "shape mismatch: indexing tensors could not be broadcast "
                    "together with shapes " +
                        shapes);
      }
      if (shape[d] == 1) shape[d] = own;
    }
  }
  return shape;
}

// Where indices, none of them a mask, stand in self. See Note [Advanced
// indexing].
template <class I>
struct Places {
  Dims<I> index;                 // the shape of all indices together
  Dims<I> sizes[2], strides[2];  // of the dims before and after them
  Dims<I> shape() const {        // of the result
    Dims<I> all = sizes[0];
    for (const I& s : index) all.push_back(s);
    for (const I& s : sizes[1]) all.push_back(s);
    return all;
  }
};

template <class I, class T>
Places<I> places_of(const Spec<I>& self, ArrayRef<T> indices) {
  Places<I> places;
  places.index = common_shape<I>(indices);
  int64_t first = -1, last = -1, count = 0;
  auto indexed = [&](int64_t d) {
    return d < static_cast<int64_t>(indices.size()) && indices[d].defined();
  };
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!indexed(d)) continue;
    if (first < 0) first = d;
    last = d;
    ++count;
  }
  bool neighbours = last - first + 1 == count;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (indexed(d)) continue;
    int side = neighbours && d < first ? 0 : 1;
    places.sizes[side].push_back(self.sizes()[d]);
    places.strides[side].push_back(self.strides()[d]);
  }
  return places;
}

template <class I>
void check_values(ArrayRef<I> values, ArrayRef<I> shape) {
  // A trailing shape of ones may have more dims than the result.
  size_t extra = 0;
  while (values.size() - extra > shape.size() && values[extra] == 1) ++extra;
  size_t rank = values.size() - extra;
  bool fits = rank <= shape.size();
  for (size_t d = 1; fits && d <= rank; ++d) {
    const I& own = values[values.size() - d];
    fits = own == 1 || own == shape[shape.size() - d];
  }
  TAEDA_CHECK(fits,
              "shape mismatch: value tensor of shape ",
              values,
              " cannot be broadcast to indexing result of shape ",
              shape);
}

// The mask, if the indices are one mask alone.
inline const Tensor* only_mask(ArrayRef<OptionalTensor> indices) {
  bool one = indices.size() == 1 && indices[0] && indices[0]->defined();
  return one && indices[0]->dtype() == kBool ? &*indices[0] : nullptr;
}

}  // namespace taeda::native
