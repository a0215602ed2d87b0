// The Bessel functions J and Y of the orders 0 and 1.
// Method: up to 16 polynomials cell by cell, about the zeros where a cell has
// one; beyond, modulus and phase (DLMF 10.18), fitted in 1 / x^2. Below 2 the
// logarithm of Y and its pole stand apart (DLMF 10.8.1, 10.8.2).
// Errors are below two ulp of the modulus, and of the values nearly everywhere.
#pragma once

#include <taeda/aten/math/cell.h>
#include <taeda/aten/math/cells_jy.h>
#include <taeda/aten/math/compare.h>
#include <taeda/aten/math/power.h>

namespace taeda::math {

// 2 / pi in two parts
constexpr double kInversePi2 = 0x1.45f306dc9c883p-1;
constexpr double kInversePi2Low = -0x1.6b01ec5417056p-55;

// For x >= 16: J with quadrants == 1, Y with 0.
TAEDA_PART_FN double hankel_far(int order, int quadrants, double x) {
  const double y = 1.0 / (x * x);
  const double modulus = order == 0 ? cell_of(kHankel0Modulus, y, 256.0)
                                    : cell_of(kHankel1Modulus, y, 256.0);
  const double phase = order == 0 ? cell_of(kHankel0Phase, y, 256.0)
                                  : cell_of(kHankel1Phase, y, 256.0);
  // x - (2 order + 1) pi / 4
  const double turn = order == 0 ? 0x1.921fb54442d18p-1 : 0x1.2d97c7f3321d2p1;
  const double rest =
      order == 0 ? 0x1.1a62633145c07p-55 : 0x1.a79394c9e8a0ap-54;
  const Pair<double> main = two_sum(x, -turn);
  const Pair<double> angle = two_sum(main.high, phase / x);
  const double wave =
      wave_of_pair(angle.high, (main.low - rest) + angle.low, quadrants);
  const Pair<double> size =
      divide_pairs(Pair<double>{modulus, 0.0}, root_of_pair({x, 0.0}));
  return size.high * wave + size.low * wave;
}

TAEDA_SHARED_FN double bessel_j0(double x) {
  const double a = fabs_of(x);
  if (a < 16.0) {
    return centred_cell(kBesselJ0[static_cast<int>(a)], a);
  }
  if (a < kInfinity<double>) return hankel_far(0, 1, a);
  return a != a ? a : 0.0;
}

TAEDA_SHARED_FN double bessel_j1(double x) {
  const double a = fabs_of(x);
  double value = a != a ? a : 0.0;
  if (a < 16.0) {
    value = centred_cell(kBesselJ1[static_cast<int>(a)], a);
  } else if (a < kInfinity<double>) {
    value = hankel_far(1, 1, a);
  }
  return flip_sign(value, x);
}

// 2 / pi (log(x) j + pole), the smaller last.
TAEDA_FN Pair<double> y_singular(double x, double j, Pair<double> pole) {
  const Pair<double> log = log_double_parts(x);
  const Pair<double> product = multiply_pairs(log, {j, 0.0});
  return multiply_pairs(add_pairs(pole, product),
                        {kInversePi2, kInversePi2Low});
}

TAEDA_SHARED_FN double bessel_y0(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity<double> : kNan<double>;
  if (x < 2.0) {
    const Pair<double> part = y_singular(x, bessel_j0(x), {0.0, 0.0});
    const double rest = cell_of(kSmallY0, x * x, 0.25);
    return part.high + (part.low + rest);
  }
  if (x < 16.0) {
    return centred_cell(kBesselY0[static_cast<int>(x) - 2], x);
  }
  return x < kInfinity<double> ? hankel_far(0, 0, x) : 0.0;
}

TAEDA_SHARED_FN double bessel_y1(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity<double> : kNan<double>;
  if (x < 0x1p-1000) return -kInversePi2 / x;
  if (x < 2.0) {
    const Pair<double> pole =
        divide_pairs(Pair<double>{-1.0, 0.0}, Pair<double>{x, 0.0});
    const Pair<double> part = y_singular(x, bessel_j1(x), pole);
    const double rest = x * cell_of(kSmallY1, x * x, 0.25);
    return part.high + (part.low + rest);
  }
  if (x < 16.0) {
    return centred_cell(kBesselY1[static_cast<int>(x) - 2], x);
  }
  return x < kInfinity<double> ? hankel_far(1, 0, x) : 0.0;
}

// sin(x) / x
TAEDA_SHARED_FN double spherical_bessel_j0(double x) {
  if (fabs_of(x) < 0x1p-27) return 1.0;
  return is_inf(x) ? 0.0 : sin_any(x) / x;
}

}  // namespace taeda::math
