// Sizes and integers that differ from call to call, when guards are checked
// and graphs run.
#pragma once

#include <taeda/csrc/python/tensor_type.h>

#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/c10/symbolic/size_program.h>

#include <optional>
#include <string>
#include <unordered_map>

namespace taeda::capture {

// Note [Sizes that differ]
// A size or an integer that differed between two captures is a symbol: inside
// of the capture it is a taeda.SymInt, and tensors that have it are symbolic
// meta tensors. A decision about it leaves a condition in the ShapeEnv. Both
// conditions and the numbers that a graph needs are compiled to programs over
// the symbols' values, which are read from the places of the guards. No Python
// runs: a program is a list of operations on a stack of int64_t.
using symbolic::SizeProgram;
using symbolic::SymbolNumbers;

// Where a symbol's value is found. A symbol with several sources has one value.
struct SizeSource {
  enum Kind : uint8_t { Size, Stride, Number } kind;
  int symbol;  // position among the values
  int place;
  int dim = 0;
  bool first = true;  // of the sources of its symbol
};

// What must hold of the symbols of one captured part.
struct SizeGuards {
  struct Condition {
    SizeProgram program;
    std::string text, where;
  };
  struct Stride {
    int place, dim;
    SizeProgram program;
  };
  std::vector<SizeSource> sources;      // each symbol's first one before others
  std::vector<symbolic::Range> ranges;  // by symbol
  std::vector<Condition> conditions;
  std::vector<Stride> strides;

  // Reads the symbols' values from those of the places, which are of the right
  // types. False where something does not hold.
  bool hold(const std::vector<PyObject*>& places,
            std::vector<int64_t>& values) const;
  // What does not hold of them, in words; `name` gives those of a place.
  template <class Name>
  std::string failure(const std::vector<PyObject*>& places, Name name) const;

  // -1, or the number of the source, condition or stride (counted on) that
  // failed.
  int first_failure(const std::vector<PyObject*>& places,
                    std::vector<int64_t>& values) const;
};

template <class Name>
std::string SizeGuards::failure(const std::vector<PyObject*>& places,
                                Name name) const {
  std::vector<int64_t> values;
  auto at = static_cast<size_t>(first_failure(places, values));
  if (at < sources.size()) {
    const SizeSource& s = sources[at];
    const char* what = s.kind == SizeSource::Number   ? "value of "
                       : s.kind == SizeSource::Stride ? "stride of "
                                                      : "size of ";
    return what + name(s.place) +
           (s.kind == SizeSource::Number
                ? std::string()
                : " at dimension " + std::to_string(s.dim));
  }
  at -= sources.size();
  if (at < strides.size()) {
    return "stride of " + name(strides[at].place) + " at dimension " +
           std::to_string(strides[at].dim);
  }
  at -= strides.size();
  if (at >= conditions.size()) return "sizes";
  const Condition& c = conditions[at];
  return c.where.empty() ? c.text : c.text + " (asked at " + c.where + ")";
}

// What a run of a graph knows of sizes: the values of the symbols, and the
// programs that its arguments name.
struct SizeValues {
  const std::vector<SizeProgram>* programs;
  std::vector<int64_t> symbols;
  // By program, what a backend's function computed of them; or empty.
  std::vector<python::Ref> given = {};
  // A Python int; RuntimeError where the program divides by zero.
  PyObject* number(int program) const;
  // Of a symbol that comes from data.
  void define(int symbol, PyObject* number);
};

}  // namespace taeda::capture
