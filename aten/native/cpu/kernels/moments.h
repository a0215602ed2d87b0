// Mean and sum of squared deviations.
#pragma once

#include <cstdint>

namespace taeda {

// Of `count` numbers.
struct Moments {
  double count = 0, mean = 0, squares = 0;
  // T. Chan, G. Golub and R. LeVeque (1979).
  void add(const Moments& o) {
    if (o.count == 0) return;
    double total = count + o.count, delta = o.mean - mean;
    mean += delta * (o.count / total);
    squares += o.squares + delta * delta * (count * o.count / total);
    count = total;
  }
};

inline constexpr int64_t kMomentColumns = 128;

template <class T>
struct MomentKernels {
  // n elements.
  Moments (*row)(const T* in, int64_t n);
  // `columns` columns of n elements, `stride` elements apart.
  void (*columns)(
      const T* in, int64_t n, int64_t stride, int64_t columns, Moments* out);
};

struct MomentTable {
  MomentKernels<float> f32;
  MomentKernels<double> f64;
};

namespace isa_default {
extern const MomentTable kMomentTable;
}
namespace isa_avx2 {
extern const MomentTable kMomentTable;
}
namespace isa_avx512 {
extern const MomentTable kMomentTable;
}

}  // namespace taeda
