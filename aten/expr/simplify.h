// Constructors that fold constants, zeros, ones and double signs. They assume
// finite values (0 * x is 0), as derivatives are written.
#pragma once

#include <taeda/aten/expr/graph.h>

namespace taeda::expr {

TAEDA_API Id neg(Graph& g, Id a);
TAEDA_API Id add(Graph& g, Id a, Id b);
TAEDA_API Id sub(Graph& g, Id a, Id b);
TAEDA_API Id mul(Graph& g, Id a, Id b);
TAEDA_API Id div(Graph& g, Id a, Id b);
TAEDA_API Id power(Graph& g, Id a, Id b);
TAEDA_API Id cond(Graph& g, Id test, Id then, Id other);
TAEDA_API Id conj(Graph& g, Id a);
// The expression rebuilt bottom-up with these constructors.
TAEDA_API Id simplify(Graph& g, Id id);

inline bool is_number(const Graph& g, Id id, double value) {
  return g.is_literal(id) && g.literal_of(id).is(value);
}

}  // namespace taeda::expr
