#include <taeda/aten/native/cpu/distribution_fill.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/random.h>
#include <taeda/aten/native/cpu/random_draw.h>
#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/check.h>
#include <taeda/c10/util/half.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

namespace taeda::native {
namespace {

constexpr int64_t kChunk = 512;

const RandomTable& table() { return TAEDA_ISA_TABLE(kRandomTable); }

template <typename T>
constexpr bool kIsFloating =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> ||
    std::is_same_v<T, BFloat16>;

// Halves are made in float and rounded.
template <typename T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, double>, double, float>;

void uniform_run(CpuGeneratorImpl& g, float* out, int64_t n, float a, float b) {
  table().uniform_float(g.engine(), out, n, a, b);
}

void uniform_run(
    CpuGeneratorImpl& g, double* out, int64_t n, double a, double b) {
  table().uniform_double(g.engine(), out, n, a, b);
}

void normal_groups(float* data, int64_t groups, double mean, double std) {
  table().normal_groups_float(
      data, groups, static_cast<float>(mean), static_cast<float>(std));
}

void normal_groups(double* data, int64_t groups, double mean, double std) {
  table().normal_groups_double(data, groups, mean, std);
}

// Calls make(word) for each element, with `kWords` words joined into one.
template <int kWords, typename T, typename Make>
void from_words(T* out,
                int64_t count,
                int64_t stride,
                CpuGeneratorImpl& generator,
                Make make) {
  uint32_t words[kWords * kChunk];
  while (count > 0) {
    const int64_t run = std::min(count, kChunk);
    table().words(generator.engine(), words, kWords * run);
    for (int64_t i = 0; i < run; ++i) {
      if constexpr (kWords == 2) {
        const uint64_t high = words[2 * i];
        out[i * stride] = make(high << 32 | words[2 * i + 1]);
      } else {
        out[i * stride] = make(words[i]);
      }
    }
    out += run * stride;
    count -= run;
  }
}

template <typename T>
T from_integer(int64_t value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace

template <typename T>
void fill_uniform(T* out,
                  int64_t count,
                  int64_t stride,
                  double from,
                  double to,
                  CpuGeneratorImpl& generator) {
  using C = ComputeType<T>;
  const C low = static_cast<C>(from), high = static_cast<C>(to);
  if constexpr (std::is_same_v<T, C>) {
    if (stride == 1) return uniform_run(generator, out, count, low, high);
  }
  // Rounding to T may once more reach the excluded end.
  const T low_rounded = low, high_rounded = high;
  C values[kChunk];
  while (count > 0) {
    const int64_t run = std::min(count, kChunk);
    uniform_run(generator, values, run, low, high);
    for (int64_t i = 0; i < run; ++i) {
      const T value = values[i];
      out[i * stride] = value >= high_rounded ? low_rounded : value;
    }
    out += run * stride;
    count -= run;
  }
}

template <typename T>
void fill_normal(T* out,
                 int64_t count,
                 double mean,
                 double std,
                 CpuGeneratorImpl& generator) {
  using C = ComputeType<T>;
  if (count < 16) {
    return fill_normal_scalar(out, count, 1, mean, std, generator);
  }
  const int64_t groups = count / 16;
  if constexpr (std::is_same_v<T, C>) {
    // The words of an incomplete last group are drawn as well.
    uniform_run(generator, out, count, 0, 1);
    normal_groups(out, groups, mean, std);
  } else {
    C values[kChunk];
    for (int64_t done = 0; done < groups * 16;) {
      const int64_t run = std::min(groups * 16 - done, kChunk);
      uniform_run(generator, values, run, 0, 1);
      normal_groups(values, run / 16, mean, std);
      for (int64_t i = 0; i < run; ++i) out[done + i] = values[i];
      done += run;
    }
  }
  if (count % 16 == 0) return;
  // The last sixteen elements are made anew from words of their own.
  C last[16];
  uniform_run(generator, last, 16, 0, 1);
  normal_groups(last, 1, mean, std);
  for (int i = 0; i < 16; ++i) out[count - 16 + i] = last[i];
}

template <typename T>
void fill_normal_scalar(T* out,
                        int64_t count,
                        int64_t stride,
                        double mean,
                        double std,
                        CpuGeneratorImpl& generator) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::fma(draw_normal(generator), std, mean);
    out[i * stride] = static_cast<T>(value);
  }
}

template <typename T>
RandomRange random_range(int64_t from, int64_t to) {
  if constexpr (kIsFloating<T>) {
    constexpr int kDigits = std::is_same_v<T, double>  ? 53
                            : std::is_same_v<T, float> ? 24
                            : std::is_same_v<T, Half>  ? 11
                                                       : 8;
    // The step between neighbours of T at a value's size.
    const auto step = [](int64_t value) {
      const double size = std::fabs(static_cast<double>(value));
      return int64_t{1} << (std::ilogb(size) - kDigits + 1);
    };
    const auto rounded = [](int64_t value) {
      const ComputeType<T> nearest = from_integer<T>(value);
      // What x86 makes of a number that int64 cannot hold, infinity included.
      if (!(std::fabs(nearest) < 0x1p63f)) return INT64_MIN;
      return static_cast<int64_t>(nearest);
    };
    if (rounded(from + 1) < from) from = rounded(from + 1) + step(from + 1);
    if (rounded(to - 1) >= to) to = rounded(to - 1) - step(to - 1);
  }
  return {static_cast<uint64_t>(to) - static_cast<uint64_t>(from), from};
}

template <typename T>
void fill_random_range(T* out,
                       int64_t count,
                       int64_t stride,
                       uint64_t range,
                       int64_t base,
                       CpuGeneratorImpl& generator) {
  const uint64_t offset = static_cast<uint64_t>(base);
  if (range == 0) {
    from_words<2>(out, count, stride, generator, [](uint64_t word) {
      return from_integer<T>(static_cast<int64_t>(word));
    });
  } else if (range >= uint64_t{1} << 28) {
    // So that the modulo's bias stays below 2^-36.
    from_words<2>(out, count, stride, generator, [&](uint64_t word) {
      return from_integer<T>(static_cast<int64_t>(word % range + offset));
    });
  } else {
    const uint32_t narrow = static_cast<uint32_t>(range);
    from_words<1>(out, count, stride, generator, [&](uint32_t word) {
      return from_integer<T>(static_cast<int64_t>(word % narrow + offset));
    });
  }
}

template <typename T>
void fill_random(T* out,
                 int64_t count,
                 int64_t stride,
                 CpuGeneratorImpl& generator) {
  // One more than the largest value; 0 when all bits are used.
  constexpr uint64_t kRange = [] {
    if constexpr (std::is_same_v<T, double>) return (uint64_t{1} << 53) + 1;
    if constexpr (std::is_same_v<T, float>) return (uint64_t{1} << 24) + 1;
    if constexpr (std::is_same_v<T, Half>) return (uint64_t{1} << 11) + 1;
    if constexpr (std::is_same_v<T, BFloat16>) return (uint64_t{1} << 8) + 1;
    if constexpr (std::is_integral_v<T>) {
      if (sizeof(T) == 8 && !std::is_signed_v<T>) return uint64_t{0};
      constexpr int kBits =
          std::is_same_v<T, bool>
              ? 1
              : 8 * static_cast<int>(sizeof(T)) - (std::is_signed_v<T> ? 1 : 0);
      return uint64_t{1} << (kBits & 63);
    }
  }();
  constexpr int kWords = sizeof(T) == 8 ? 2 : 1;
  from_words<kWords>(out, count, stride, generator, [](uint64_t word) {
    const uint64_t value = kRange == 0 ? word : word % (kRange ? kRange : 1);
    return from_integer<T>(static_cast<int64_t>(value));
  });
}

template <typename T>
void fill_permutation(T* out,
                      int64_t count,
                      int64_t stride,
                      CpuGeneratorImpl& generator) {
  for (int64_t i = 0; i < count; ++i) out[i * stride] = from_integer<T>(i);
  // Above this length one word a step would be visibly biased.
  constexpr int64_t kOneWordLimit = 0xffffffffll / 20;
  for (int64_t i = 0; i < count - 1; ++i) {
    const uint64_t left = static_cast<uint64_t>(count - i);
    const uint64_t step = count < kOneWordLimit
                              ? generator.random() % static_cast<uint32_t>(left)
                              : generator.random64() % left;
    std::swap(out[i * stride], out[(i + static_cast<int64_t>(step)) * stride]);
  }
}

template <typename T>
void fill_bernoulli(T* out,
                    int64_t count,
                    int64_t stride,
                    double p,
                    CpuGeneratorImpl& generator) {
  from_words<2>(out, count, stride, generator, [p](uint64_t word) {
    return from_integer<T>(to_unit_double(word) < p ? 1 : 0);
  });
}

template <typename T, typename P>
void fill_bernoulli(T* out,
                    int64_t stride,
                    const P* p,
                    int64_t p_stride,
                    int64_t count,
                    CpuGeneratorImpl& generator) {
  using C = ComputeType<P>;
  C values[kChunk];
  while (count > 0) {
    const int64_t run = std::min(count, kChunk);
    for (int64_t i = 0; i < run; ++i) {
      const C wanted = p[i * p_stride];
      TAEDA_CHECK(wanted >= 0 && wanted <= 1,
                  "bernoulli: expected every p in [0, 1], got ",
                  wanted);
    }
    uniform_run(generator, values, run, 0, 1);
    for (int64_t i = 0; i < run; ++i) {
      const C wanted = p[i * p_stride];
      out[i * stride] = from_integer<T>(values[i] < wanted ? 1 : 0);
    }
    out += run * stride;
    p += run * p_stride;
    count -= run;
  }
}

#define INSTANTIATE_FLOATING(T)                                              \
  template void fill_uniform(                                                \
      T*, int64_t, int64_t, double, double, CpuGeneratorImpl&);              \
  template void fill_normal(T*, int64_t, double, double, CpuGeneratorImpl&); \
  template void fill_normal_scalar(                                          \
      T*, int64_t, int64_t, double, double, CpuGeneratorImpl&);

#define INSTANTIATE_ANY(T)                                                 \
  template RandomRange random_range<T>(int64_t, int64_t);                  \
  template void fill_random_range(                                         \
      T*, int64_t, int64_t, uint64_t, int64_t, CpuGeneratorImpl&);         \
  template void fill_random(T*, int64_t, int64_t, CpuGeneratorImpl&);      \
  template void fill_permutation(T*, int64_t, int64_t, CpuGeneratorImpl&); \
  template void fill_bernoulli(                                            \
      T*, int64_t, int64_t, double, CpuGeneratorImpl&);                    \
  INSTANTIATE_PAIR(T, float)                                               \
  INSTANTIATE_PAIR(T, double)                                              \
  INSTANTIATE_PAIR(T, Half)                                                \
  INSTANTIATE_PAIR(T, BFloat16)

#define INSTANTIATE_PAIR(T, P)  \
  template void fill_bernoulli( \
      T*, int64_t, const P*, int64_t, int64_t, CpuGeneratorImpl&);

INSTANTIATE_FLOATING(float)
INSTANTIATE_FLOATING(double)
INSTANTIATE_FLOATING(Half)
INSTANTIATE_FLOATING(BFloat16)
INSTANTIATE_ANY(float)
INSTANTIATE_ANY(double)
INSTANTIATE_ANY(Half)
INSTANTIATE_ANY(BFloat16)
INSTANTIATE_ANY(bool)
INSTANTIATE_ANY(uint8_t)
INSTANTIATE_ANY(int8_t)
INSTANTIATE_ANY(int16_t)
INSTANTIATE_ANY(int32_t)
INSTANTIATE_ANY(int64_t)
INSTANTIATE_ANY(uint16_t)
INSTANTIATE_ANY(uint32_t)
INSTANTIATE_ANY(uint64_t)
#undef INSTANTIATE_FLOATING
#undef INSTANTIATE_ANY
#undef INSTANTIATE_PAIR

}  // namespace taeda::native
