// Derivatives of expressions: gradients (reverse) and tangents (forward).
#pragma once

#include <taeda/aten/expr/graph.h>

namespace taeda::expr {

// Note [Complex derivatives]
// The gradient of a real loss by z = x + iy is kept as dL/dx + i dL/dy. For
// w = f(z) with gradient g it is g conj(df/dz) + conj(g) df/dconj(z), with
// Wirtinger's derivatives (Kreutz-Delgado, "The Complex Gradient Operator and
// the CR-Calculus", 2009). A holomorphic f has the first term only; a complex
// gradient that reaches a real value keeps its real part.

// The gradient of the name `var`, given that of the value under the name
// "grad". Where it contains the value itself, that becomes the name "result".
TAEDA_API Id gradient(Graph& g, Id value, std::string_view var, Kinds kinds);

// The tangent of the value, given the names of its variables' tangents.
TAEDA_API Id tangent(Graph& g,
                     Id value,
                     const std::unordered_map<std::string, std::string>& names,
                     Kinds kinds);

}  // namespace taeda::expr
