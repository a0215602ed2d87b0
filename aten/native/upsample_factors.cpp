// The upsample operators as programs call them: by sizes, or by factors.
#include <taeda/aten/iter/symbolic_caller.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/native/upsample_symbols.h>
#include <taeda/gen/native/_upsample_bicubic2d_aa.h>
#include <taeda/gen/native/_upsample_bilinear2d_aa.h>
#include <taeda/gen/native/_upsample_lanczos2d_aa.h>
#include <taeda/gen/native/_upsample_nearest_exact1d.h>
#include <taeda/gen/native/_upsample_nearest_exact2d.h>
#include <taeda/gen/native/_upsample_nearest_exact3d.h>
#include <taeda/gen/native/upsample_bicubic2d.h>
#include <taeda/gen/native/upsample_bilinear2d.h>
#include <taeda/gen/native/upsample_linear1d.h>
#include <taeda/gen/native/upsample_nearest1d.h>
#include <taeda/gen/native/upsample_nearest2d.h>
#include <taeda/gen/native/upsample_nearest3d.h>
#include <taeda/gen/native/upsample_trilinear3d.h>
#include <taeda/gen/ops/_upsample_bicubic2d_aa.h>
#include <taeda/gen/ops/_upsample_bilinear2d_aa.h>
#include <taeda/gen/ops/_upsample_lanczos2d_aa.h>
#include <taeda/gen/ops/_upsample_nearest_exact1d.h>
#include <taeda/gen/ops/_upsample_nearest_exact2d.h>
#include <taeda/gen/ops/_upsample_nearest_exact3d.h>
#include <taeda/gen/ops/upsample_bicubic2d.h>
#include <taeda/gen/ops/upsample_bilinear2d.h>
#include <taeda/gen/ops/upsample_linear1d.h>
#include <taeda/gen/ops/upsample_nearest1d.h>
#include <taeda/gen/ops/upsample_nearest2d.h>
#include <taeda/gen/ops/upsample_nearest3d.h>
#include <taeda/gen/ops/upsample_trilinear3d.h>
#include <taeda/gen/sym/_upsample_bicubic2d_aa.h>
#include <taeda/gen/sym/_upsample_bilinear2d_aa.h>
#include <taeda/gen/sym/_upsample_lanczos2d_aa.h>
#include <taeda/gen/sym/_upsample_nearest_exact1d.h>
#include <taeda/gen/sym/_upsample_nearest_exact2d.h>
#include <taeda/gen/sym/_upsample_nearest_exact3d.h>
#include <taeda/gen/sym/upsample_bicubic2d.h>
#include <taeda/gen/sym/upsample_bilinear2d.h>
#include <taeda/gen/sym/upsample_linear1d.h>
#include <taeda/gen/sym/upsample_nearest1d.h>
#include <taeda/gen/sym/upsample_nearest2d.h>
#include <taeda/gen/sym/upsample_nearest3d.h>
#include <taeda/gen/sym/upsample_trilinear3d.h>

#include <cmath>
#include <utility>

namespace taeda::native {

namespace {

using Sizes = std::optional<ArrayRef<int64_t>>;
using AnySizes = std::optional<SymIntArrayRef>;
using Factors = std::optional<ArrayRef<double>>;

// A symbol stays one where the factor is whole.
SymInt scaled(const SymInt& size, double factor) {
  if (size.is_symbolic() && factor == std::floor(factor)) {
    return size * SymInt(static_cast<int64_t>(factor));
  }
  return static_cast<int64_t>(static_cast<double>(size.guard()) * factor);
}

// The sizes of the result's planes.
Dims<SymInt> resized(const Tensor& input,
                     const AnySizes& output_size,
                     const Factors& factors,
                     size_t dims) {
  TAEDA_CHECK(output_size.has_value() != factors.has_value(),
              "Must specify exactly one of output_size and scale_factors");
  size_t given = output_size ? output_size->size() : factors->size();
  size_t planes = static_cast<size_t>(std::max<int64_t>(input.dim() - 2, 0));
  TAEDA_CHECK(given == planes && given == dims,
              "upsample: expected ",
              dims,
              output_size ? " sizes" : " factors",
              " for an input of rank ",
              dims + 2,
              ", got ",
              given,
              " for ",
              input);
  if (output_size) return *output_size;
  Dims<SymInt> sizes;
  for (size_t d = 0; d < planes; ++d) {
    sizes.push_back(scaled(symbolic_sizes(input)[d + 2], (*factors)[d]));
  }
  return sizes;
}

// Calls f(sizes, factor of each dim...).
template <class F, size_t... D>
Tensor by_factors(const Tensor& input,
                  const AnySizes& sizes,
                  const Factors& factors,
                  F&& f,
                  std::index_sequence<D...>) {
  Dims<SymInt> out = resized(input, sizes, factors, sizeof...(D));
  auto factor = [&](size_t d) {
    return factors ? std::optional<double>((*factors)[d]) : std::nullopt;
  };
  return f(SymIntArrayRef(out), factor(D)...);
}

AnySizes any(const Sizes& sizes) {
  return sizes ? AnySizes(as_symbolic(*sizes)) : std::nullopt;
}

// What a boxed call says: a tensor, sizes or None, ..., factors or None.
struct Boxed {
  explicit Boxed(std::span<IValue> a) : input(a[0].get<TensorBase>()) {
    if (!a[1].is_none()) known = boxing::to_symbols(a[1]);
    if (!a[1].is_none()) sizes = SymIntArrayRef(known);
    if (!a.back().is_none()) factors = a.back().get<std::vector<double>>();
  }
  const Tensor& input;
  Dims<SymInt> known;
  AnySizes sizes;
  Factors factors;
};

}  // namespace

#define TAEDA_UPSAMPLE(NAME, DIMS)                                         \
  static Tensor NAME##_any(                                                \
      const Tensor& input, const AnySizes& size, const Factors& factors) { \
    auto op = [&](SymIntArrayRef out, auto... scales) {                    \
      return sym::NAME(input, out, scales...);                             \
    };                                                                     \
    auto dims = std::make_index_sequence<DIMS>();                          \
    return by_factors(input, size, factors, op, dims);                     \
  }                                                                        \
  static void NAME##_boxed(std::span<IValue> a, Stack& out) {              \
    Boxed b(a);                                                            \
    out.emplace_back(NAME##_any(b.input, b.sizes, b.factors));             \
  }                                                                        \
  Tensor NAME(const Tensor& input, Sizes size, Factors factors) {          \
    return NAME##_any(input, any(size), factors);                          \
  }
TAEDA_UPSAMPLE(upsample_nearest1d, 1)
TAEDA_UPSAMPLE(upsample_nearest2d, 2)
TAEDA_UPSAMPLE(upsample_nearest3d, 3)
TAEDA_UPSAMPLE(_upsample_nearest_exact1d, 1)
TAEDA_UPSAMPLE(_upsample_nearest_exact2d, 2)
TAEDA_UPSAMPLE(_upsample_nearest_exact3d, 3)
#undef TAEDA_UPSAMPLE

#define TAEDA_UPSAMPLE(NAME, DIMS)                                      \
  static Tensor NAME##_any(const Tensor& input,                         \
                           const AnySizes& size,                        \
                           bool corners,                                \
                           const Factors& factors) {                    \
    auto op = [&](SymIntArrayRef out, auto... scales) {                 \
      return sym::NAME(input, out, corners, scales...);                 \
    };                                                                  \
    auto dims = std::make_index_sequence<DIMS>();                       \
    return by_factors(input, size, factors, op, dims);                  \
  }                                                                     \
  static void NAME##_boxed(std::span<IValue> a, Stack& out) {           \
    Boxed b(a);                                                         \
    bool corners = a[2].get<bool>();                                    \
    out.emplace_back(NAME##_any(b.input, b.sizes, corners, b.factors)); \
  }                                                                     \
  Tensor NAME(                                                          \
      const Tensor& input, Sizes size, bool corners, Factors factors) { \
    return NAME##_any(input, any(size), corners, factors);              \
  }
TAEDA_UPSAMPLE(upsample_linear1d, 1)
TAEDA_UPSAMPLE(upsample_bilinear2d, 2)
TAEDA_UPSAMPLE(upsample_trilinear3d, 3)
TAEDA_UPSAMPLE(upsample_bicubic2d, 2)
TAEDA_UPSAMPLE(_upsample_bilinear2d_aa, 2)
TAEDA_UPSAMPLE(_upsample_bicubic2d_aa, 2)
TAEDA_UPSAMPLE(_upsample_lanczos2d_aa, 2)
#undef TAEDA_UPSAMPLE

SymbolicComposite find_symbolic_upsample(const OperatorEntry& op) {
  struct Known {
    const OperatorEntry* op;
    SymbolicComposite function;
  };
  static constexpr Known kKnown[] = {
      {&ops::entries::upsample_nearest1d_vec, upsample_nearest1d_boxed},
      {&ops::entries::upsample_nearest2d_vec, upsample_nearest2d_boxed},
      {&ops::entries::upsample_nearest3d_vec, upsample_nearest3d_boxed},
      {&ops::entries::_upsample_nearest_exact1d_vec,
       _upsample_nearest_exact1d_boxed},
      {&ops::entries::_upsample_nearest_exact2d_vec,
       _upsample_nearest_exact2d_boxed},
      {&ops::entries::_upsample_nearest_exact3d_vec,
       _upsample_nearest_exact3d_boxed},
      {&ops::entries::upsample_linear1d_vec, upsample_linear1d_boxed},
      {&ops::entries::upsample_bilinear2d_vec, upsample_bilinear2d_boxed},
      {&ops::entries::upsample_trilinear3d_vec, upsample_trilinear3d_boxed},
      {&ops::entries::upsample_bicubic2d_vec, upsample_bicubic2d_boxed},
      {&ops::entries::_upsample_bilinear2d_aa_vec,
       _upsample_bilinear2d_aa_boxed},
      {&ops::entries::_upsample_bicubic2d_aa_vec, _upsample_bicubic2d_aa_boxed},
      {&ops::entries::_upsample_lanczos2d_aa_vec, _upsample_lanczos2d_aa_boxed},
  };
  for (const Known& known : kKnown) {
    if (known.op == &op) return known.function;
  }
  return nullptr;
}

}  // namespace taeda::native
