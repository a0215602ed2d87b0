#include <taeda/aten/native/cpu/kernels/pool.h>

TAEDA_ISA_BEGIN

namespace {

template <class T>
struct Pooling {
  using A = lane_sum_t<T>;

  static void max_step(const T* __restrict x,
                       A* __restrict best,
                       int32_t* __restrict at,
                       int32_t index,
                       int64_t channels) {
    for (int64_t c = 0; c < channels; ++c) {
      A v = static_cast<A>(x[c]), old = best[c];
      bool take = (v > old) | (v != v);
      best[c] = take ? v : old;
      at[c] = take ? index : at[c];
    }
  }

  static constexpr PoolKernels<T> kTable = {max_step};
};

}  // namespace

extern const PoolTable kPoolTable = {Pooling<float>::kTable,
                                     Pooling<double>::kTable,
                                     Pooling<BFloat16>::kTable,
                                     Pooling<Half>::kTable};

TAEDA_ISA_END
