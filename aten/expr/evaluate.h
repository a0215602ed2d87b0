// Expressions computed in double precision.
#pragma once

#include <taeda/aten/expr/graph.h>

#include <complex>

namespace taeda::expr {

// A value of any kind; integers and bools are exact.
struct Value {
  Kind kind = Kind::Float;
  int64_t integer = 0;
  std::complex<double> number;

  static Value of(int64_t v) { return {Kind::Int, v, double(v)}; }
  static Value of(bool v) { return {Kind::Bool, v, double(v)}; }
  static Value of(double v) { return {Kind::Float, 0, v}; }
  static Value of(std::complex<double> v) { return {Kind::Complex, 0, v}; }
  TAEDA_API Value to(Kind kind) const;
};

// The value, given those of its names. The compute type is the one of `kinds`
// (int64, float64 or complex128); functions are those of aten/math.
TAEDA_API Value evaluate(const Graph& g,
                         Id id,
                         const std::unordered_map<std::string, Value>& values,
                         Kind compute);

}  // namespace taeda::expr
