// The Airy function Ai.
// Method: polynomials cell by cell on [-12, 2); beyond, the asymptotic forms
// DLMF 9.7.5 to the right, and modulus and phase (9.8) to the left, fitted in
// powers of 1 / zeta, zeta = 2/3 |x|^(3/2) in two parts.
#pragma once

#include <taeda/aten/math/cell.h>

namespace taeda::math {

TAEDA_SHARED_FN double airy_ai(double x) {
  if (x >= -12.0 && x < 2.0) {
    const int index = static_cast<int>((x + 12.0) * 2.0);
    return centred_cell(kAiryAi[index], x);
  }
  const double a = fabs_of(x);
  // To the left the envelope is below 1e-50 there, and zeta overflows soon.
  if (!(a < 1e200)) return a != a ? a : 0.0;
  const Pair<double> root = root_of_pair({a, 0.0});
  const Pair<double> quarter = root_of_pair(root);
  const Pair<double> zeta =
      multiply_pairs(multiply_pairs(root, {a, 0.0}),
                     {0x1.5555555555555p-1, 0x1.5555555555555p-55});
  if (x > 0.0) {
    const double value = cell_of(kAiryDecaying, 1.0 / zeta.high, 8.0);
    return exp_quotient(value, {-zeta.high, -zeta.low}, quarter);
  }
  const double y = 1.0 / (zeta.high * zeta.high);
  const double phase = cell_of(kAiryPhase, y, 767.0) / zeta.high;
  // zeta + pi / 4
  const Pair<double> turn = two_sum(zeta.high, 0x1.921fb54442d18p-1);
  const Pair<double> angle = two_sum(turn.high, phase);
  const double low = (turn.low + zeta.low + 0x1.1a62633145c07p-55) + angle.low;
  const double wave = wave_of_pair(angle.high, low, 0);
  const Pair<double> size =
      divide_pairs(Pair<double>{cell_of(kAiryModulus, y, 767.0), 0.0}, quarter);
  return size.high * wave + size.low * wave;
}

}  // namespace taeda::math
