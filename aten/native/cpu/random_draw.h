// Single draws in double precision from the CPU generator, as PyTorch makes
// them: the building blocks of every distribution drawn element by element.
#pragma once

#include <taeda/c10/core/generator.h>

#include <cmath>

namespace taeda::native {

/// The low 53 bits as a number in [0, 1).
inline double to_unit_double(uint64_t word) {
  constexpr uint64_t kMask = (uint64_t{1} << 53) - 1;
  return static_cast<double>(static_cast<int64_t>(word & kMask)) * 0x1p-53;
}

/// Uniform on [0, 1): two words.
inline double draw_uniform(CpuGeneratorImpl& generator) {
  return to_unit_double(generator.random64());
}

/// Standard normal: Box-Muller, whose second value the generator keeps for the
/// next call (which then draws no word).
inline double draw_normal(CpuGeneratorImpl& generator) {
  constexpr double kTwoPi = 6.283185307179586;
  auto& cached = generator.cached_normal();
  if (cached) {
    const double value = *cached;
    cached.reset();
    return value;
  }
  const double angle = kTwoPi * draw_uniform(generator);
  const double radius = std::sqrt(-2.0 * std::log1p(-draw_uniform(generator)));
  cached = radius * std::sin(angle);
  return radius * std::cos(angle);
}

}  // namespace taeda::native
