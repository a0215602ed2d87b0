// The functions that expressions may call; the table is generated from
// tools/codegen/expr_functions.py, where each entry is explained.
#pragma once

#include <taeda/c10/util/complex.h>
#include <taeda/c10/util/macros.h>

#include <cstdint>

namespace taeda::expr {

// How the kind of a call's result follows from the kinds of its arguments.
enum class ResultRule : uint8_t {
  Float,      // at least float
  Same,       // the widest of the arguments
  Real,       // complex becomes float, others stay
  RealFloat,  // float for every argument
  Bool,
};

inline constexpr int kMaxArity = 3;

// Partial derivatives are words (see graph.h) over the names a, b, c; null
// stands for a derivative that is zero or nowhere defined.
struct Function {
  const char* name;
  // The tensor operator of the same meaning; with braces a call of several.
  const char* op;
  // A format of the C++ call where that is not math::NAME(arguments).
  const char* cpp;
  uint8_t arity;
  ResultRule result;
  bool complex_ok;
  bool has_complex_partials;
  bool shared;  // See Note [Shared functions] in aten/math/prim.h.
  const uint16_t* partials[kMaxArity];
  const uint16_t* complex_partials[kMaxArity];
  const uint16_t* conj_partials[kMaxArity];
  // The function itself, by aten/math; null for kinds that it does not take.
  int64_t (*on_integers)(const int64_t* args);
  double (*on_reals)(const double* args);
  complex<double> (*on_complex)(const complex<double>* args);

  const uint16_t* partial(int argument, bool is_complex) const {
    return is_complex && has_complex_partials ? complex_partials[argument]
                                              : partials[argument];
  }
};

extern TAEDA_API const Function kFunctions[];
extern TAEDA_API const int kNumFunctions;
// The number of a function; -1 for an unknown name.
TAEDA_API int find_function(const char* name);

}  // namespace taeda::expr
