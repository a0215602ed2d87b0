// Expressions as text: in their own language, and as C++ or CUDA.
#pragma once

#include <taeda/aten/expr/graph.h>

#include <optional>

namespace taeda::expr {

// In the language of the records; parsing it gives an equal expression.
TAEDA_API std::string to_text(const Graph& g, Id id);

// Names that stand in printed C++ for the compute type, its real type, the type
// of integers, and the namespace of the scalar functions.
struct CppTypes {
  std::string compute = "T";
  std::string real = "R";
  std::string integer = "int64_t";
  std::string math = "math::";
};

// Powers with small literal exponents as products, roots and quotients.
TAEDA_API Id expand_powers(Graph& g, Id id, Kind compute);

struct CppBlock {
  std::vector<std::string> statements;  // definitions of repeated parts
  std::vector<std::string> results;     // one per expression
};

// C++ for values of one kind of compute type; parts that repeat are named
// first. `want` is the kind that results are converted to.
TAEDA_API CppBlock to_cpp(Graph& g,
                          const std::vector<Id>& expressions,
                          Kinds kinds,
                          std::optional<Kind> want = std::nullopt,
                          const CppTypes& types = {});

}  // namespace taeda::expr
