#include <taeda/csrc/distributed/reduce.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

namespace taeda::distributed {

namespace {

template <class T>
inline constexpr bool is_small_float =
    std::is_class_v<T> && sizeof(T) <= 2 && std::is_convertible_v<T, float>;
template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<complex<T>> : std::true_type {};

// What a reduction of T's computes in.
template <class T>
struct AccOf {
  using type = std::conditional_t<is_small_float<T>, float, T>;
};
template <>
struct AccOf<complex<Half>> {
  using type = complex<float>;
};
template <>
struct AccOf<bool> {
  using type = uint8_t;
};

template <ReduceOp op, class A>
TAEDA_ALWAYS_INLINE A combined(A a, A b) {
  if constexpr (op == ReduceOp::Product) {
    return static_cast<A>(a * b);
  } else if constexpr (op == ReduceOp::Min) {
    return b < a ? b : a;
  } else if constexpr (op == ReduceOp::Max) {
    return a < b ? b : a;
  } else if constexpr (op == ReduceOp::Band) {
    return static_cast<A>(a & b);
  } else if constexpr (op == ReduceOp::Bor) {
    return static_cast<A>(a | b);
  } else if constexpr (op == ReduceOp::Bxor) {
    return static_cast<A>(a ^ b);
  } else {
    return static_cast<A>(a + b);
  }
}

template <class T, class A>
TAEDA_ALWAYS_INLINE T stored(A value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_same_v<T, A>) {
    return value;
  } else {
    return T(value);
  }
}

template <class A>
A scaled(A value, double factor) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(std::trunc(static_cast<double>(value) * factor));
  } else if constexpr (IsComplex<A>::value) {
    using R = decltype(value.real());
    return A(static_cast<R>(value.real() * factor),
             static_cast<R>(value.imag() * factor));
  } else {
    return static_cast<A>(value * factor);
  }
}

// Values of a block stay in the first cache while all sources pass.
constexpr size_t kBlock = 2048;

template <ReduceOp op, class T>
void reduce_typed(void* out,
                  const void* const* sources,
                  size_t count,
                  size_t elements,
                  double factor) {
  using A = typename AccOf<T>::type;
  auto* to = static_cast<T*>(out);
  const auto* first = static_cast<const T*>(sources[0]);
  if constexpr (std::is_same_v<T, A>) {
    if (count == 2 && factor == 1.0) {
      const auto* second = static_cast<const T*>(sources[1]);
      for (size_t i = 0; i < elements; ++i) {
        to[i] = combined<op, A>(first[i], second[i]);
      }
      return;
    }
  }
  alignas(64) std::array<A, kBlock> sums;
  for (size_t at = 0; at < elements; at += kBlock) {
    const size_t n = std::min(kBlock, elements - at);
    for (size_t i = 0; i < n; ++i) sums[i] = static_cast<A>(first[at + i]);
    for (size_t s = 1; s < count; ++s) {
      const auto* from = static_cast<const T*>(sources[s]) + at;
      for (size_t i = 0; i < n; ++i) {
        sums[i] = combined<op, A>(sums[i], static_cast<A>(from[i]));
      }
    }
    if (factor != 1.0) {
      for (size_t i = 0; i < n; ++i) sums[i] = scaled(sums[i], factor);
    }
    for (size_t i = 0; i < n; ++i) to[at + i] = stored<T, A>(sums[i]);
  }
}

using Kernel = void (*)(void*, const void* const*, size_t, size_t, double);

template <ReduceOp op>
Kernel kernel_of(ScalarType dtype) {
  constexpr bool bitwise =
      op == ReduceOp::Band || op == ReduceOp::Bor || op == ReduceOp::Bxor;
  constexpr bool ordered = op == ReduceOp::Min || op == ReduceOp::Max;
  switch (dtype) {
#define _(name, type, number, text)                               \
  case ScalarType::name:                                          \
    if constexpr ((bitwise && !std::is_integral_v<type>) ||       \
                  (ordered && IsComplex<type>::value) ||          \
                  (std::is_class_v<type> && sizeof(type) == 1)) { \
      return nullptr;                                             \
    } else {                                                      \
      return &reduce_typed<op, type>;                             \
    }
    TAEDA_FORALL_TYPES(_)
#undef _
    default:
      return nullptr;
  }
}

Kernel find_kernel(ReduceOp op, ScalarType dtype) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
      return kernel_of<ReduceOp::Sum>(dtype);
    case ReduceOp::Product:
      return kernel_of<ReduceOp::Product>(dtype);
    case ReduceOp::Min:
      return kernel_of<ReduceOp::Min>(dtype);
    case ReduceOp::Max:
      return kernel_of<ReduceOp::Max>(dtype);
    case ReduceOp::Band:
      return kernel_of<ReduceOp::Band>(dtype);
    case ReduceOp::Bor:
      return kernel_of<ReduceOp::Bor>(dtype);
    case ReduceOp::Bxor:
      return kernel_of<ReduceOp::Bxor>(dtype);
  }
  return nullptr;
}

}  // namespace

const char* name_of(ReduceOp op) {
  constexpr std::array names{
      "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"};
  return names[static_cast<size_t>(op)];
}

void check_reduction(const char* collective, const Reduction& r) {
  TAEDA_CHECK(r.op != ReduceOp::Avg || !is_integral(r.dtype, true),
              collective,
              ": result type Float can't be cast to the desired output type ",
              type_name(r.dtype),
              " (ReduceOp.AVG)");
  TAEDA_CHECK(find_kernel(r.op, r.dtype) != nullptr,
              collective,
              ": Invalid scalar type or operation: ReduceOp.",
              name_of(r.op),
              " is not supported for ",
              dtype_name(r.dtype));
}

void reduce(const Reduction& r,
            void* out,
            const void* const* sources,
            size_t count,
            size_t elements) {
  const bool scales = r.op == ReduceOp::Avg;
  find_kernel(r.op, r.dtype)(
      out, sources, count, elements, scales ? r.factor : 1.0);
}

}  // namespace taeda::distributed
