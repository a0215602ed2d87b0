// Conversion loops between the directly supported types, per ISA level.
#include <taeda/aten/native/cpu/kernels/convert.h>
#include <taeda/aten/native/cpu/kernels/isa.h>
#include <taeda/aten/native/cpu/kernels/lanes.h>
#include <taeda/aten/native/cpu/kernels/pointwise.h>

TAEDA_ISA_BEGIN

namespace {

template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<complex<T>> = true;
template <class T>
constexpr bool kIsSmallFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class To, class From>
[[gnu::always_inline]] inline To convert_one(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (kIsComplex<From>) {
    if constexpr (kIsComplex<To>) {
      using R = typename To::value_type;
      return To(static_cast<R>(v.real()), static_cast<R>(v.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return v.real() != 0 || v.imag() != 0;
    } else {
      return convert_one<To>(v.real());
    }
  } else if constexpr (kIsComplex<To>) {
    return To(convert_one<typename To::value_type>(v), 0);
  } else if constexpr (kIsSmallFloat<From>) {
    return convert_one<To>(static_cast<float>(v));
  } else if constexpr (kIsSmallFloat<To>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != 0;
  } else if constexpr (std::is_floating_point_v<From> &&
                       std::is_integral_v<To> && sizeof(To) < 4) {
    // Out-of-range values wrap, as PyTorch's do on this processor.
    return static_cast<To>(static_cast<int64_t>(v));
  } else {
    return static_cast<To>(v);
  }
}

// g++ 12 has no loop of the instructions for halves.
template <class From, class To>
constexpr bool kByLanes =
    (std::is_same_v<From, Half> && std::is_same_v<To, float>) ||
    (std::is_same_v<From, float> && std::is_same_v<To, Half>);

// One for all types that the value may come from.
template <class To>
[[gnu::noinline]] void fill_row(To* out, int64_t n, To value) {
  for (int64_t i = 0; i < n; ++i) out[i] = value;
}

template <class From, class To>
void convert_loop(const void* src,
                  int64_t src_stride,
                  void* dst,
                  int64_t dst_stride,
                  int64_t n) {
  constexpr int64_t from_size = sizeof(From), to_size = sizeof(To);
  const From* __restrict in = static_cast<const From*>(src);
  To* __restrict out = static_cast<To*>(dst);
  if (src_stride == from_size && dst_stride == to_size) {
    if constexpr (kByLanes<From, To>) {
      for_lanes<float>(n, [&](auto load, auto store) { store(out, load(in)); });
      return;
    }
    for (int64_t i = 0; i < n; ++i) out[i] = convert_one<To>(element(in, i));
    return;
  }
  // Backwards, or every second element: a load and a permutation, where the
  // compiler knows.
  if constexpr (std::is_same_v<From, To>) {
    if (src_stride == -from_size && dst_stride == to_size) {
      for (int64_t i = 0; i < n; ++i) out[i] = convert_one<To>(element(in, -i));
      return;
    }
    if (src_stride == 2 * from_size && dst_stride == to_size) {
      for (int64_t i = 0; i < n; ++i) out[i] = in[2 * i];
      return;
    }
  }
  if (src_stride == 0) {
    To value = convert_one<To>(element(in, 0));
    if (dst_stride == to_size) return fill_row(out, n, value);
  }
  const char* from = static_cast<const char*>(src);
  char* to = static_cast<char*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(to) =
        convert_one<To>(element(reinterpret_cast<const From*>(from), 0));
    from += src_stride;
    to += dst_stride;
  }
}

}  // namespace

#define TAEDA_ROW(F)                \
  {convert_loop<F, bool>,           \
   convert_loop<F, uint8_t>,        \
   convert_loop<F, int8_t>,         \
   convert_loop<F, int16_t>,        \
   convert_loop<F, int32_t>,        \
   convert_loop<F, int64_t>,        \
   convert_loop<F, Half>,           \
   convert_loop<F, BFloat16>,       \
   convert_loop<F, float>,          \
   convert_loop<F, double>,         \
   convert_loop<F, complex<float>>, \
   convert_loop<F, complex<double>>}
extern const ConvertTable kConvertTable = {TAEDA_ROW(bool),
                                           TAEDA_ROW(uint8_t),
                                           TAEDA_ROW(int8_t),
                                           TAEDA_ROW(int16_t),
                                           TAEDA_ROW(int32_t),
                                           TAEDA_ROW(int64_t),
                                           TAEDA_ROW(Half),
                                           TAEDA_ROW(BFloat16),
                                           TAEDA_ROW(float),
                                           TAEDA_ROW(double),
                                           TAEDA_ROW(complex<float>),
                                           TAEDA_ROW(complex<double>)};
#undef TAEDA_ROW

TAEDA_ISA_END
