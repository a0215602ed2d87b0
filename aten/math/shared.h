// The functions of Note [Shared functions]: declared in the library's kernels,
// defined here for all others.
#pragma once

#include <taeda/aten/math/prim.h>

#if !defined(TAEDA_MATH_LINKED)
#include <taeda/aten/math/airy.h>
#include <taeda/aten/math/bessel_ik.h>
#include <taeda/aten/math/bessel_jy.h>
#include <taeda/aten/math/incomplete.h>
#include <taeda/aten/math/normal.h>
#include <taeda/aten/math/orthogonal.h>
#include <taeda/aten/math/zeta.h>
#endif

namespace taeda::math {

// Of one, two and three numbers; float goes through double.
#if defined(TAEDA_MATH_LINKED)
#define TAEDA_DECLARED(DECLARATION) DECLARATION;
#else
#define TAEDA_DECLARED(DECLARATION)
#endif
#define TAEDA_SHARED_1(NAME)                                 \
  TAEDA_DECLARED(double NAME(double x))                      \
  TAEDA_FN float NAME(float x) {                             \
    return static_cast<float>(NAME(static_cast<double>(x))); \
  }
#define TAEDA_SHARED_2(NAME)                                   \
  TAEDA_DECLARED(double NAME(double x, double y))              \
  TAEDA_FN float NAME(float x, float y) {                      \
    return static_cast<float>(                                 \
        NAME(static_cast<double>(x), static_cast<double>(y))); \
  }
#define TAEDA_SHARED_3(NAME)                                 \
  TAEDA_DECLARED(double NAME(double x, double y, double z))  \
  TAEDA_FN float NAME(float x, float y, float z) {           \
    return static_cast<float>(NAME(static_cast<double>(x),   \
                                   static_cast<double>(y),   \
                                   static_cast<double>(z))); \
  }
// Polynomials of degree n at x.
#define TAEDA_SHARED_POLYNOMIAL(NAME)             \
  TAEDA_DECLARED(double NAME(double x, double n)) \
  TAEDA_DECLARED(float NAME(float x, float n))

TAEDA_SHARED_1(airy_ai)
TAEDA_SHARED_1(bessel_j0)
TAEDA_SHARED_1(bessel_j1)
TAEDA_SHARED_1(bessel_y0)
TAEDA_SHARED_1(bessel_y1)
TAEDA_SHARED_1(spherical_bessel_j0)
TAEDA_SHARED_1(modified_bessel_i0)
TAEDA_SHARED_1(modified_bessel_i1)
TAEDA_SHARED_1(modified_bessel_k0)
TAEDA_SHARED_1(modified_bessel_k1)
TAEDA_SHARED_1(scaled_modified_bessel_k0)
TAEDA_SHARED_1(scaled_modified_bessel_k1)
TAEDA_SHARED_1(erfcx)
TAEDA_SHARED_1(log_ndtr)
TAEDA_SHARED_1(ndtri)
TAEDA_SHARED_2(zeta)
TAEDA_SHARED_2(polygamma)
TAEDA_SHARED_2(igamma)
TAEDA_SHARED_2(igammac)
TAEDA_SHARED_2(gamma_quantile_slope)
TAEDA_SHARED_2(gamma_quantile_curve)
TAEDA_SHARED_3(beta_quantile_slope)
TAEDA_SHARED_POLYNOMIAL(chebyshev_polynomial_t)
TAEDA_SHARED_POLYNOMIAL(chebyshev_polynomial_u)
TAEDA_SHARED_POLYNOMIAL(chebyshev_polynomial_v)
TAEDA_SHARED_POLYNOMIAL(chebyshev_polynomial_w)
TAEDA_SHARED_POLYNOMIAL(shifted_chebyshev_polynomial_t)
TAEDA_SHARED_POLYNOMIAL(shifted_chebyshev_polynomial_u)
TAEDA_SHARED_POLYNOMIAL(shifted_chebyshev_polynomial_v)
TAEDA_SHARED_POLYNOMIAL(shifted_chebyshev_polynomial_w)
TAEDA_SHARED_POLYNOMIAL(legendre_polynomial_p)
TAEDA_SHARED_POLYNOMIAL(laguerre_polynomial_l)
TAEDA_SHARED_POLYNOMIAL(hermite_polynomial_h)
TAEDA_SHARED_POLYNOMIAL(hermite_polynomial_he)
#undef TAEDA_SHARED_POLYNOMIAL
#undef TAEDA_SHARED_3
#undef TAEDA_SHARED_2
#undef TAEDA_SHARED_1
#undef TAEDA_DECLARED

}  // namespace taeda::math
