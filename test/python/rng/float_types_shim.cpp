// C entry points for test_float_types.py: both directions of every storage
// float, one element at a time (scalar_*) and through the bulk loops (bulk_*).

#include <taeda/c10/util/convert_bulk.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

template <typename T>
void widen_each(const T* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    volatile float value = from[i];
    to[i] = value;
  }
}

template <typename T>
void narrow_each(const float* from, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    volatile float value = from[i];
    to[i] = T(value);
  }
}

}  // namespace

#define ENTRY_POINTS(T)                                                   \
  EXPORT void scalar_widen_##T(const taeda::T* a, float* b, int64_t n) {  \
    widen_each(a, b, n);                                                  \
  }                                                                       \
  EXPORT void scalar_narrow_##T(const float* a, taeda::T* b, int64_t n) { \
    narrow_each(a, b, n);                                                 \
  }                                                                       \
  EXPORT void bulk_widen_##T(const taeda::T* a, float* b, int64_t n) {    \
    taeda::convert(a, b, n);                                              \
  }                                                                       \
  EXPORT void bulk_narrow_##T(const float* a, taeda::T* b, int64_t n) {   \
    taeda::convert(a, b, n);                                              \
  }

ENTRY_POINTS(Half)
ENTRY_POINTS(BFloat16)
ENTRY_POINTS(Float8_e4m3fn)
ENTRY_POINTS(Float8_e5m2)
ENTRY_POINTS(Float8_e4m3fnuz)
ENTRY_POINTS(Float8_e5m2fnuz)
ENTRY_POINTS(Float8_e8m0fnu)
