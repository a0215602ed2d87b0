// Loops over elements as a program of few kinds of instructions.
#pragma once

#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/expr/graph.h>
#include <taeda/c10/symbolic/sym_int.h>

#include <array>
#include <string>
#include <vector>

namespace taeda::compiler::loops {

// Note [Loop programs]
// A program says what is computed for each point of a space of axes; how its
// loops are nested is decided later (schedule.h). Each instruction makes one
// variable, by its number, from variables before it:
//   load     the element of a buffer at a place that is linear in the axes; one
//            with bounds gives a number where the buffer has no such element
//   index    the point's index along an axis
//   number   an integer that is the same for all points
//   gather   the element at a place that an int64 variable says
//   compute  an expression of a record over variables of one type
//   convert  to another type, as a cast of tensors does
//   round    to what a 16-bit float keeps
//   reduce   folds a variable over the reduced axes: init, combine, finish
//   store    writes a variable to a place
// A variable varies along the axes that it counts on; `reduce` takes away the
// reduced ones. All kinds check their operands when they are made, so a
// program that exists is legal: an operand that comes later, of another type,
// a name that is no operand, or a store that misses an axis is an error there.
using Var = int32_t;
using AxisSet = uint64_t;
inline constexpr size_t kMaxAxes = 32;
constexpr AxisSet axis_bit(size_t axis) { return AxisSet{1} << axis; }

// Which element of a buffer: offset + sum of strides[axis] * index, in
// elements. As sizes of axes, integers may be expressions, whose values a
// kernel gets.
struct Place {
  SymInt offset = 0;
  std::vector<SymInt> strides;
};

// Part of a place that may lie outside of the buffer's dim: an index of `size`
// many, `stride` elements apart. Steps are not negative.
struct Bound {
  int64_t offset = 0;
  std::vector<int64_t> steps;  // by axis
  int64_t size = 0;
  SymInt stride = 0;
};

struct Buffer {
  ScalarType dtype = ScalarType::Float;
  bool written = false;
};

enum class Op : uint8_t {
  Load,
  Index,
  Number,
  Gather,
  Compute,
  Convert,
  Round,
  Reduce,
  Store,
};

struct Fold {
  expr::Id init = 0, combine = 0, finish = 0;  // over a, b; over acc, count
};

struct Instruction {
  Op op = Op::Load;
  Compute type = Compute::F32;      // of the variable
  Compute computes = Compute::F32;  // in which expressions are computed
  AxisSet axes = 0;
  int buffer = -1;
  size_t axis = 0;            // of Index
  Place place;                // of Load, Gather, Number (its offset) and Store
  std::vector<Bound> bounds;  // of Load, beside its place
  SymInt reach = 0;  // of Load: elements that the buffer has; 0: who knows
  ScalarType dtype = ScalarType::Float;  // of Round
  std::vector<Var> operands;
  // Of Compute, over names v0, v1, ...; of Load what stands out of bounds.
  expr::Id value = 0;
  Fold fold;

  // Elements from one point to the next along an axis, of Load and Store.
  SymInt step(size_t axis) const;
  bool is_bounded_along(size_t axis) const;
};

class Program {
 public:
  // Axes and buffers come before instructions that use them.
  size_t axis(SymInt size, bool reduced);
  int buffer(ScalarType dtype, bool written);

  Var load(int buffer, Place place, SymInt reach = 0);
  Var load(int buffer,
           Place place,
           std::vector<Bound> bounds,
           const expr::Literal& fill,
           SymInt reach);
  Var index(size_t axis);
  Var number(SymInt value, Compute type);
  Var gather(int buffer, SymInt offset, Var position);
  Var compute(Compute computes,
              Compute type,
              expr::Id value,
              std::vector<Var> operands);
  // The variable itself where it has the type.
  Var convert(Var v, Compute type);
  Var round(Var v, ScalarType dtype);
  Var reduce(Var v, Compute type, Fold fold);
  void store(Var v, int buffer, Place place);

  // The name of a variable in expressions.
  static std::string name_of(Var v) { return str_cat("v", int64_t{v}); }
  const Instruction& operator[](Var v) const {
    return instructions_[static_cast<size_t>(v)];
  }
  Var count() const { return static_cast<Var>(instructions_.size()); }
  const std::vector<SymInt>& sizes() const { return sizes_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  AxisSet reduced() const { return reduced_; }
  AxisSet all_axes() const { return axis_bit(sizes_.size()) - 1; }
  SymInt extent(AxisSet axes) const;
  // Axes that lie behind each other everywhere become one.
  void join_axes();

  expr::Graph expressions;

 private:
  Var add(Instruction instruction);
  void check_operand(Var v, Compute type) const;
  void check_place(int buffer, const Place& place, bool written) const;
  bool joinable(size_t outer, size_t inner) const;
  void join(size_t outer, size_t inner);

  std::vector<SymInt> sizes_;
  AxisSet reduced_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<Instruction> instructions_;
};

// Whether a written buffer may be the memory of a read one: each element is
// read, by all loads, where the element at the same place is written.
bool may_share(const Program& program, int written, int read);

bool has_bounds(const Program& program);
// Whether sizes, places or numbers of it are expressions.
bool has_symbols(const Program& program);

expr::Kind kind_of(Compute type);
// Additions, roughly, that an expression costs for an element.
int work_of(const expr::Graph& g, expr::Id id);
// For people and for the hash of a program.
std::string text_of(const Program& program);

}  // namespace taeda::compiler::loops
