// Permutations that pivots say, a thread for each.
#pragma once

#include <taeda/aten/native/cuda/formula.cuh>

namespace taeda {

// The rows of the identity, exchanged; `order` is for use here.
template <class G>
__device__ inline void permutation_matrix(const G& g, Long b) {
  using V = typename decltype(g.p)::Stored;
  const Long rows = g.p.size(-1);
  V* p = g.p.data() + b * rows * rows;
  const Long steps = g.pivots.size(-1), first = b * rows;
  for (Long r = 0; r < rows; ++r) g.order.write(first + r, r);
  for (Long k = 0; k < steps; ++k) {
    const Long with = g.pivots.flat(b * steps + k) - 1;
    require_inside(with, rows);
    const Long held = g.order.flat(first + k);
    g.order.write(first + k, g.order.flat(first + with));
    g.order.write(first + with, held);
  }
  for (Long r = 0; r < rows; ++r) {
    p[g.order.flat(first + r) * rows + r] = V(1);
  }
}

}  // namespace taeda
