#include <taeda/aten/native/cpu/kernels/pool.h>

TAEDA_ISA_BEGIN

namespace {

template <class T>
struct Pooling {
  using A = lane_sum_t<T>;

  using L = Lanes<A>;
  using V = typename L::V;
  using Place = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;
  typedef Place Places __attribute__((vector_size(64)));

  // The channels of one vector, whose maxima stay in registers. kWhole: all
  // lanes are channels.
  template <bool kWhole>
  [[gnu::always_inline]] static inline void max_lanes(const T* x,
                                                      const int32_t* places,
                                                      int64_t count,
                                                      int64_t channels,
                                                      int64_t lanes,
                                                      T* y,
                                                      int64_t* index) {
    auto load = [&](const T* p) __attribute__((always_inline)) {
      return kWhole ? L::load(p) : L::load_some(p, lanes);
    };
    V best = load(x + places[0] * channels);
    Places at = Places{} + places[0];
    for (int64_t k = 1; k < count; ++k) {
      V v = load(x + places[k] * channels);
      auto take = (v > best) | (v != v);
      best = take ? v : best;
      at = take ? Places{} + places[k] : at;
    }
    Place buffer[L::kCount];
    std::memcpy(buffer, &at, sizeof(at));
    if constexpr (kWhole) {
      L::store(y, best);
      for (int64_t l = 0; l < L::kCount; ++l) index[l] = buffer[l];
    } else {
      L::store_some(y, best, lanes);
      for (int64_t l = 0; l < lanes; ++l) index[l] = buffer[l];
    }
  }

  static void max_window(const T* x,
                         const int32_t* places,
                         int64_t count,
                         int64_t channels,
                         T* y,
                         int64_t* index) {
    constexpr int64_t n = L::kCount;
    int64_t c = 0;
    for (; c + n <= channels; c += n) {
      max_lanes<true>(x + c, places, count, channels, n, y + c, index + c);
    }
    if (c == channels) return;
    max_lanes<false>(
        x + c, places, count, channels, channels - c, y + c, index + c);
  }

  static constexpr PoolKernels<T> kTable = {max_window};
};

}  // namespace

extern const PoolTable kPoolTable = {Pooling<float>::kTable,
                                     Pooling<double>::kTable,
                                     Pooling<BFloat16>::kTable,
                                     Pooling<Half>::kTable};

TAEDA_ISA_END
