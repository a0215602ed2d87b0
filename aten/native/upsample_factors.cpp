// The upsample operators as programs call them: by sizes, or by factors.
#include <taeda/aten/native/symbolic_sizes.h>
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
                     const Sizes& output_size,
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
  if (output_size) return as_symbolic(*output_size);
  Dims<SymInt> sizes;
  for (size_t d = 0; d < planes; ++d) {
    sizes.push_back(scaled(symbolic_sizes(input)[d + 2], (*factors)[d]));
  }
  return sizes;
}

// Calls f(sizes, factor of each dim...).
template <class F, size_t... D>
Tensor by_factors(const Tensor& input,
                  const Sizes& sizes,
                  const Factors& factors,
                  F&& f,
                  std::index_sequence<D...>) {
  Dims<SymInt> out = resized(input, sizes, factors, sizeof...(D));
  auto factor = [&](size_t d) {
    return factors ? std::optional<double>((*factors)[d]) : std::nullopt;
  };
  return f(SymIntArrayRef(out), factor(D)...);
}

}  // namespace

#define TAEDA_UPSAMPLE(NAME, DIMS)                                \
  Tensor NAME(const Tensor& input, Sizes size, Factors factors) { \
    auto op = [&](SymIntArrayRef out, auto... scales) {           \
      return sym::NAME(input, out, scales...);                    \
    };                                                            \
    auto dims = std::make_index_sequence<DIMS>();                 \
    return by_factors(input, size, factors, op, dims);            \
  }
TAEDA_UPSAMPLE(upsample_nearest1d, 1)
TAEDA_UPSAMPLE(upsample_nearest2d, 2)
TAEDA_UPSAMPLE(upsample_nearest3d, 3)
TAEDA_UPSAMPLE(_upsample_nearest_exact1d, 1)
TAEDA_UPSAMPLE(_upsample_nearest_exact2d, 2)
TAEDA_UPSAMPLE(_upsample_nearest_exact3d, 3)
#undef TAEDA_UPSAMPLE

#define TAEDA_UPSAMPLE(NAME, DIMS)                                      \
  Tensor NAME(                                                          \
      const Tensor& input, Sizes size, bool corners, Factors factors) { \
    auto op = [&](SymIntArrayRef out, auto... scales) {                 \
      return sym::NAME(input, out, corners, scales...);                 \
    };                                                                  \
    auto dims = std::make_index_sequence<DIMS>();                       \
    return by_factors(input, size, factors, op, dims);                  \
  }
TAEDA_UPSAMPLE(upsample_linear1d, 1)
TAEDA_UPSAMPLE(upsample_bilinear2d, 2)
TAEDA_UPSAMPLE(upsample_trilinear3d, 3)
TAEDA_UPSAMPLE(upsample_bicubic2d, 2)
TAEDA_UPSAMPLE(_upsample_bilinear2d_aa, 2)
TAEDA_UPSAMPLE(_upsample_bicubic2d_aa, 2)
TAEDA_UPSAMPLE(_upsample_lanczos2d_aa, 2)
#undef TAEDA_UPSAMPLE

}  // namespace taeda::native
