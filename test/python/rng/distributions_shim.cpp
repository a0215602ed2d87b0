// C entry points for test_generator.py and test_distributions.py.

#include <taeda/aten/native/cpu/distribution_fill.h>
#include <taeda/aten/native/cpu/distribution_samplers.h>
#include <taeda/c10/core/philox.h>
#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/half.h>

#include <cstring>

using namespace taeda;
using namespace taeda::native;
using G = CpuGeneratorImpl;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT G* generator_new(uint64_t seed) { return new G(seed); }
EXPORT void generator_delete(G* g) { g->release(); }
EXPORT void generator_seed(G* g, uint64_t seed) { g->manual_seed(seed); }
EXPORT uint64_t generator_initial_seed(G* g) { return g->initial_seed(); }
EXPORT uint64_t generator_random_seed(G* g) { return g->seed(); }
EXPORT uint32_t generator_random(G* g) { return g->random(); }
EXPORT G* generator_clone(G* g) { return static_cast<G*>(g->clone().detach()); }
EXPORT void generator_get_state(G* g, uint8_t* out) { g->get_state(out); }
EXPORT int generator_set_state(G* g, const uint8_t* bytes, int64_t size) {
  try {
    g->set_state(bytes, static_cast<size_t>(size));
    return 0;
  } catch (const Error&) {
    return 1;
  }
}
EXPORT uint64_t default_generator_seed() {
  return default_cpu_generator().initial_seed();
}
EXPORT void philox(const uint32_t* counter, uint64_t key, uint32_t* out) {
  Philox4 in;
  std::memcpy(&in, counter, sizeof(in));
  const Philox4 block = philox4x32(in, key);
  std::memcpy(out, &block, sizeof(block));
}
EXPORT void philox_stream(uint64_t seed,
                          uint64_t stream,
                          uint32_t* out,
                          int64_t n) {
  Philox4x32 engine(seed, stream, /*offset=*/0);
  for (int64_t i = 0; i < n; ++i) out[i] = engine.random();
}

#define FLOATING(T, name)                                                    \
  EXPORT void uniform_##name(                                                \
      G* g, T* out, int64_t n, int64_t stride, double a, double b) {         \
    fill_uniform(out, n, stride, a, b, *g);                                  \
  }                                                                          \
  EXPORT void normal_##name(                                                 \
      G* g, T* out, int64_t n, int64_t stride, double a, double b) {         \
    if (stride == 1) return fill_normal(out, n, a, b, *g);                   \
    fill_normal_scalar(out, n, stride, a, b, *g);                            \
  }                                                                          \
  EXPORT void log_normal_##name(                                             \
      G* g, T* out, int64_t n, int64_t stride, double a, double b) {         \
    fill_log_normal(out, n, stride, a, b, *g);                               \
  }                                                                          \
  EXPORT void cauchy_##name(                                                 \
      G* g, T* out, int64_t n, int64_t stride, double a, double b) {         \
    fill_cauchy(out, n, stride, a, b, *g);                                   \
  }                                                                          \
  EXPORT void exponential_##name(                                            \
      G* g, T* out, int64_t n, int64_t stride, double a) {                   \
    fill_exponential(out, n, stride, a, *g);                                 \
  }                                                                          \
  EXPORT void poisson_##name(G* g, T* out, const T* rate, int64_t n) {       \
    fill_poisson(out, 1, rate, 1, n, *g);                                    \
  }                                                                          \
  EXPORT void gamma_##name(G* g, T* out, const T* alpha, int64_t n) {        \
    fill_standard_gamma(out, 1, alpha, 1, n, *g);                            \
  }                                                                          \
  EXPORT void binomial_##name(                                               \
      G* g, T* out, const T* count, const T* p, int64_t n) {                 \
    fill_binomial(out, 1, count, 1, p, 1, n, *g);                            \
  }                                                                          \
  EXPORT void multinomial_##name(                                            \
      G* g, int64_t* out, const T* p, int64_t categories, int64_t samples) { \
    fill_multinomial(out, samples, p, 1, categories, *g);                    \
  }                                                                          \
  EXPORT void bernoulli_each_##name(G* g, T* out, const T* p, int64_t n) {   \
    fill_bernoulli(out, 1, p, 1, n, *g);                                     \
  }

#define ANY(T, name)                                                           \
  EXPORT void random_##name(G* g, T* out, int64_t n, int64_t stride) {         \
    fill_random(out, n, stride, *g);                                           \
  }                                                                            \
  EXPORT void range_##name(                                                    \
      G* g, T* out, int64_t n, int64_t s, int64_t from, int64_t to) {          \
    const auto [range, base] = random_range<T>(from, to);                      \
    fill_random_range(out, n, s, range, base, *g);                             \
  }                                                                            \
  EXPORT void any_bits_##name(G* g, T* out, int64_t n, int64_t s) {            \
    fill_random_range(out, n, s, /*range=*/0, /*base=*/0, *g);                 \
  }                                                                            \
  EXPORT void permutation_##name(G* g, T* out, int64_t n, int64_t s) {         \
    fill_permutation(out, n, s, *g);                                           \
  }                                                                            \
  EXPORT void bernoulli_##name(G* g, T* out, int64_t n, int64_t s, double p) { \
    fill_bernoulli(out, n, s, p, *g);                                          \
  }                                                                            \
  EXPORT void geometric_##name(G* g, T* out, int64_t n, int64_t s, double p) { \
    fill_geometric(out, n, s, p, *g);                                          \
  }

FLOATING(float, float32)
FLOATING(double, float64)
FLOATING(Half, float16)
FLOATING(BFloat16, bfloat16)
ANY(float, float32)
ANY(double, float64)
ANY(Half, float16)
ANY(BFloat16, bfloat16)
ANY(bool, bool)
ANY(uint8_t, uint8)
ANY(int8_t, int8)
ANY(int16_t, int16)
ANY(int32_t, int32)
ANY(int64_t, int64)
