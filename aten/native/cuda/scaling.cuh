// What GradScaler does to gradients and to the factor of the loss.
#pragma once

#include <taeda/aten/native/cuda/formula.cuh>

namespace taeda {

template <class G>
__device__ inline void unscale_at(const G& g, Long i) {
  const auto value = g.result.flat(i);
  if (!math::is_finite(value)) g.found_inf.write(0, 1.0f);
  using V = typename decltype(g.result)::Value;
  g.result.write(i, value * static_cast<V>(g.inv_scale.flat(0)));
}

// One thread.
template <class G>
__device__ inline void update_scale(const G& g) {
  const float scale = g.scale.flat(0);
  Long steps = g.steps.flat(0) + 1;
  if (g.found_inf.flat(0) != 0) {
    g.scale.write(0, scale * g.backoff.real());
    steps = 0;
  } else if (steps == g.interval.integer()) {
    const float grown = static_cast<float>(scale * g.growth.real());
    if (math::is_finite(grown)) g.scale.write(0, grown);
    steps = 0;
  }
  g.steps.write(0, steps);
}

}  // namespace taeda
