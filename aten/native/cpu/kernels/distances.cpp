#include <taeda/aten/native/cpu/kernels/distances.h>

#include <taeda/aten/math/inverse_trig.h>
#include <taeda/aten/math/power.h>
#include <taeda/aten/native/cpu/kernels/lanes.h>

#include <algorithm>
#include <cmath>
#include <vector>

TAEDA_ISA_BEGIN

namespace {

template <class T>
using V = typename Lanes<T>::V;

template <class T>
TAEDA_LANES_FN V<T> size_of(V<T> d) {
  return d < 0 ? -d : d;
}
template <class T>
TAEDA_LANES_FN V<T> sign_of(V<T> d) {
  V<T> zero = {}, one = zero + 1;
  return d > 0 ? one : d < 0 ? -one : zero;
}
template <class T>
TAEDA_LANES_FN V<T> power(V<T> x, T p) {
  T buffer[Lanes<T>::kCount];
  std::memcpy(buffer, &x, sizeof(x));
  for (T& v : buffer) v = math::pow(v, p);
  std::memcpy(&x, buffer, sizeof(x));
  return x;
}

// A norm: how a difference joins the sum, what the sum becomes, and the
// derivative by a difference: `slope` times `factor`, which is the pair's.
template <class T>
struct NormZero {
  TAEDA_LANES_FN V<T> add(V<T> sum, V<T> d, T) {
    V<T> counted = d != 0 ? V<T>{} + 1 : V<T>{};
    return sum + (d != d ? d : counted);  // a NaN stays one
  }
  static T finish(T sum, T) { return sum; }
  static T factor(T, T, T) { return 0; }
  TAEDA_LANES_FN V<T> slope(V<T> d, T, T) { return V<T>{}; }
};
template <class T>
struct NormOne {
  TAEDA_LANES_FN V<T> add(V<T> sum, V<T> d, T) { return sum + size_of<T>(d); }
  static T finish(T sum, T) { return sum; }
  static T factor(T g, T, T) { return g; }
  TAEDA_LANES_FN V<T> slope(V<T> d, T, T) { return sign_of<T>(d); }
};
template <class T>
struct NormTwo {
  TAEDA_LANES_FN V<T> add(V<T> sum, V<T> d, T) { return sum + d * d; }
  static T finish(T sum, T) { return std::sqrt(sum); }
  static T factor(T g, T distance, T) {
    return distance == 0 ? T(0) : g / distance;
  }
  TAEDA_LANES_FN V<T> slope(V<T> d, T, T) { return d; }
};
template <class T>
struct NormMax {
  TAEDA_LANES_FN V<T> add(V<T> sum, V<T> d, T) {
    V<T> size = size_of<T>(d);
    return ((size > sum) | (size != size)) ? size : sum;
  }
  static T finish(T sum, T) { return sum; }
  static T factor(T g, T, T) { return g; }
  TAEDA_LANES_FN V<T> slope(V<T> d, T distance, T) {
    return size_of<T>(d) == distance ? sign_of<T>(d) : V<T>{};
  }
};
template <class T>
struct NormAny {
  TAEDA_LANES_FN V<T> add(V<T> sum, V<T> d, T p) {
    return sum + power<T>(size_of<T>(d), p);
  }
  static T finish(T sum, T p) { return std::pow(sum, 1 / p); }
  static T factor(T g, T distance, T p) {
    return distance == 0 ? T(0) : g / std::pow(distance, p - 1);
  }
  TAEDA_LANES_FN V<T> slope(V<T> d, T, T p) {
    V<T> change = sign_of<T>(d) * power<T>(size_of<T>(d), p - 1);
    if (p >= 1) return change;
    return d == 0 ? V<T>{} : change;
  }
};

template <class T, class F>
void visit_norm(NormKind kind, F&& f) {
  switch (kind) {
    case NormKind::kZero:
      return f(NormZero<T>());
    case NormKind::kOne:
      return f(NormOne<T>());
    case NormKind::kTwo:
      return f(NormTwo<T>());
    case NormKind::kMax:
      return f(NormMax<T>());
    case NormKind::kAny:
      return f(NormAny<T>());
  }
}

// Rows of b whose distances are the lanes of one vector, element by element:
// no sum goes across lanes, and each is taken in the order of the elements.
template <class T>
void pack(const T* b, int64_t rows, int64_t width, T* panel) {
  constexpr int64_t kLanes = Lanes<T>::kCount;
  if (rows == kLanes) {
    for (int64_t k = 0; k < width; ++k) {
      for (int64_t l = 0; l < kLanes; ++l) {
        panel[k * kLanes + l] = b[l * width + k];
      }
    }
    return;
  }
  for (int64_t k = 0; k < width; ++k) {
    for (int64_t l = 0; l < kLanes; ++l) {
      panel[k * kLanes + l] = l < rows ? b[l * width + k] : T(0);
    }
  }
}

// kRows rows of a against a panel.
template <int kRows, class N, class T>
[[gnu::always_inline]] inline void tile(
    const T* a, int64_t width, T p, const T* panel, T* sums) {
  constexpr int64_t kLanes = Lanes<T>::kCount;
  V<T> sum[kRows] = {};
  for (int64_t k = 0; k < width; ++k) {
    V<T> other = Lanes<T>::load(panel + k * kLanes);
    for (int r = 0; r < kRows; ++r) {
      sum[r] = N::add(sum[r], a[r * width + k] - other, p);
    }
  }
  for (int r = 0; r < kRows; ++r) Lanes<T>::store(sums + r * kLanes, sum[r]);
}

template <class N, class T>
void distances_of(const RowDistances<T>& how,
                  const T* a,
                  int64_t begin,
                  int64_t end,
                  const T* b,
                  int64_t m,
                  T* out) {
  constexpr int64_t kLanes = Lanes<T>::kCount;
  constexpr int kRows = 6;
  const int64_t width = how.width;
  std::vector<T> panel(static_cast<size_t>(width * kLanes));
  T sums[kRows * kLanes];
  // Pairs of earlier rows are other rows' pairs.
  int64_t j = how.pairs ? (begin + 1) / kLanes * kLanes : 0;
  for (; j < m; j += kLanes) {
    int64_t count = std::min(kLanes, m - j);
    int64_t last = how.pairs ? std::min(end, j + count - 1) : end;
    pack(b + j * width, count, width, panel.data());
    for (int64_t i = begin; i < last; i += kRows) {
      int64_t rows = std::min<int64_t>(kRows, last - i);
      const T* from = a + i * width;
      if (rows == kRows) {
        tile<kRows, N>(from, width, how.p, panel.data(), sums);
      } else {
        for (int64_t r = 0; r < rows; ++r) {
          tile<1, N>(
              from + r * width, width, how.p, panel.data(), sums + r * kLanes);
        }
      }
      for (int64_t r = 0; r < rows; ++r) {
        int64_t row = i + r;
        int64_t first = how.pairs ? std::max<int64_t>(row + 1 - j, 0) : 0;
        T* to = out + row * how.step + j;
        // Row i of the pairs begins i (i + 3) / 2 + 1 places before i * step.
        if (how.pairs) to -= row * (row + 3) / 2 + 1;
        for (int64_t l = first; l < count; ++l) {
          to[l] = N::finish(sums[r * kLanes + l], how.p);
        }
      }
    }
  }
}

template <class T>
void distances(const RowDistances<T>& how,
               const T* a,
               int64_t begin,
               int64_t end,
               const T* b,
               int64_t m,
               T* out) {
  visit_norm<T>(how.kind, [&]<class N>(N) {
    distances_of<N>(how, a, begin, end, b, m, out);
  });
}

template <class N, class T>
void slopes_of(const RowDistances<T>& how,
               const T* row,
               const T* b,
               int64_t m,
               const T* g,
               const T* d,
               T* to) {
  for_lanes<T>(how.width, [&](auto lanes_of, auto put) {
    V<T> x = lanes_of(row), sum = {};
    for (int64_t j = 0; j < m; ++j) {
      T factor = g[j] == 0 ? T(0) : N::factor(g[j], d[j], how.p);
      if (factor == 0) continue;
      V<T> change = x - lanes_of(b + j * how.width);
      sum += factor * N::slope(change, d[j], how.p);
    }
    put(to, sum);
  });
}

template <class T>
void slopes(const RowDistances<T>& how,
            const T* row,
            const T* b,
            int64_t m,
            const T* g,
            const T* d,
            T* to) {
  visit_norm<T>(how.kind,
                [&]<class N>(N) { slopes_of<N>(how, row, b, m, g, d, to); });
}

template <class T>
void squares(const T* x, int64_t n, int64_t width, T* out) {
  for (int64_t i = 0; i < n; ++i) {
    BlockSum<T> sum;
    for_lanes<T>(width, [&](auto lanes_of, auto) {
      V<T> v = lanes_of(x + i * width);
      sum.add(v * v);
    });
    out[i] = sum.get();
  }
}

template <class T>
T exact_distance(const T* a, const T* b, int64_t width) {
  BlockSum<T> sum;
  for_lanes<T>(width, [&](auto lanes_of, auto) {
    V<T> d = lanes_of(a) - lanes_of(b);
    sum.add(d * d);
  });
  return std::sqrt(sum.get());
}

// Note [Distances by products]
// |a - b|^2 is |a|^2 + |b|^2 - 2 ab, which a matrix product gives for all rows
// at once. Where little is left of the two squares, so little is of their
// digits; such pairs, and those whose sum is no number, are computed from their
// differences, so that equal rows have the distance 0.
template <class T>
void finish(const T* row,
            T a2,
            const T* b,
            const T* b2,
            int64_t m,
            int64_t width,
            T* out) {
  constexpr T kKept = T(1) / 16;
  constexpr int64_t kBlock = 64;
  for (int64_t begin = 0; begin < m; begin += kBlock) {
    int64_t end = std::min(m, begin + kBlock);
    T poor = 0;
    unsigned char is_poor[kBlock];
    for (int64_t j = begin; j < end; ++j) {
      T both = a2 + b2[j], left = out[j] + both;
      bool kept = left >= kKept * both;
      is_poor[j - begin] = !kept;
      poor += kept ? T(0) : T(1);
      out[j] = math::sqrt(kept ? left : T(0));
    }
    if (poor == 0) continue;
    for (int64_t j = begin; j < end; ++j) {
      if (is_poor[j - begin] == 0) continue;
      out[j] = exact_distance(row, b + j * width, width);
    }
  }
}

}  // namespace

extern const DistanceTable kDistanceTable = {
    {distances<float>, slopes<float>, squares<float>, finish<float>},
    {distances<double>, slopes<double>, squares<double>, finish<double>}};

TAEDA_ISA_END
