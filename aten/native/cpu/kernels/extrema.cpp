#include <taeda/aten/math/compare.h>
#include <taeda/aten/math/integer.h>
#include <taeda/aten/native/cpu/kernels/extrema.h>
#include <taeda/aten/native/cpu/kernels/isa.h>

TAEDA_ISA_BEGIN

namespace {

struct Larger {
  template <class T>
  [[gnu::always_inline]] static T pick(T a, T b) {
    return math::maximum(a, b);
  }
  template <class T>
  [[gnu::always_inline]] static bool better(T a, T b) {
    return a > b;
  }
};
struct Smaller {
  template <class T>
  [[gnu::always_inline]] static T pick(T a, T b) {
    return math::minimum(a, b);
  }
  template <class T>
  [[gnu::always_inline]] static bool better(T a, T b) {
    return a < b;
  }
};

// Equality tests of a whole vector at a time: one by one, the branch behind
// each would take longer than the extremum itself.
template <int width, class T, class Matches>
[[gnu::always_inline]] inline int64_t first(const T* x,
                                            int64_t n,
                                            Matches matches) {
  int64_t i = 0;
  for (; i + width <= n; i += width) {
    unsigned any = 0;
    for (int l = 0; l < width; ++l) any |= matches(x[i + l]);
    if (any != 0) break;
  }
  for (; i < n; ++i) {
    if (matches(x[i])) return i;
  }
  return n;
}

// Two passes over a block: its extremum, vectorised, and only where that is
// better than what was found before, its place.
template <class Rule, class T>
int64_t place(const T* in, int64_t n) {
  constexpr int64_t block = 4096;
  constexpr int chains = 256 / static_cast<int>(sizeof(T));
  T best = in[0];
  int64_t found = 0;
  for (int64_t begin = 0; begin < n; begin += block) {
    int64_t count = n - begin < block ? n - begin : block;
    const T* x = in + begin;
    T parts[chains];
    for (int l = 0; l < chains; ++l) parts[l] = x[0];
    int64_t i = 0;
    for (; i + chains <= count; i += chains) {
      for (int l = 0; l < chains; ++l) {
        parts[l] = Rule::pick(parts[l], x[i + l]);
      }
    }
    for (; i < count; ++i) parts[0] = Rule::pick(parts[0], x[i]);
    T local = parts[0];
    for (int l = 1; l < chains; ++l) local = Rule::pick(local, parts[l]);
    if (local != local) {
      return begin + first<chains>(x, count, [](T v) { return v != v; });
    }
    if (begin > 0 && !Rule::better(local, best)) continue;
    best = local;
    found =
        begin + first<chains>(x, count, [local](T v) { return v == local; });
  }
  return found;
}

template <class T>
int64_t row(const T* in, int64_t n, bool largest) {
  return largest ? place<Larger>(in, n) : place<Smaller>(in, n);
}

template <class Rule, class T>
void columns_of(const T* in,
                int64_t n,
                int64_t stride,
                int64_t count,
                T* __restrict values,
                int64_t* __restrict indices) {
  for (int64_t c = 0; c < count; ++c) {
    values[c] = in[c];
    indices[c] = 0;
  }
  for (int64_t i = 1; i < n; ++i) {
    const T* x = in + i * stride;
    for (int64_t c = 0; c < count; ++c) {
      T v = values[c], w = x[c];
      bool take = (Rule::better(w, v) | (w != w)) & (v == v);
      values[c] = take ? w : v;
      indices[c] = take ? i : indices[c];
    }
  }
}

template <class T>
void columns(const T* in,
             int64_t n,
             int64_t stride,
             int64_t count,
             bool largest,
             T* values,
             int64_t* indices) {
  if (largest) {
    columns_of<Larger>(in, n, stride, count, values, indices);
  } else {
    columns_of<Smaller>(in, n, stride, count, values, indices);
  }
}

template <class T>
int64_t beyond(const T* in, int64_t n, T bound, bool largest) {
  constexpr int width = 256 / static_cast<int>(sizeof(T));
  if (largest) {
    return first<width>(in, n, [=](T v) { return !(v <= bound); });
  }
  return first<width>(in, n, [=](T v) { return v < bound; });
}

template <class T>
constexpr ExtremumKernels<T> kKernels = {row<T>, columns<T>, beyond<T>};

}  // namespace

extern const ExtremumTable kExtremumTable = {
    kKernels<float>, kKernels<double>, kKernels<int64_t>};

TAEDA_ISA_END
