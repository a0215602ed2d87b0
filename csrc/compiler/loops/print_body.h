// Text of what stands inside the loops of a kernel.
#pragma once

#include <taeda/aten/expr/print.h>
#include <taeda/csrc/compiler/loops/print.h>

#include <string>
#include <vector>

namespace taeda::compiler::loops {

const char* type_name(Compute type);
const char* memory_name(ScalarType dtype);
// The text with the forms of sin, cos and tan that take huge arguments.
std::string any_argument(std::string text);
// By buffer: whether a result may lie in an operand's memory, see may_share.
std::vector<bool> shares_memory(const Program& program);

// What a pass does to full values.
struct PassParts {
  std::vector<Var> stores, kept, sums;
  bool empty() const { return stores.empty() && kept.empty() && sums.empty(); }
};

// The integers of a text: themselves, or a name for an expression.
class NumberNames {
 public:
  std::string operator()(const SymInt& v);
  std::vector<SymInt> numbers;
};

class BodyPrinter {
 public:
  BodyPrinter(Program& program, const Schedule& schedule, NumberNames& names);
  virtual ~BodyPrinter() = default;

  PassParts parts(int pass) const;
  // From here on these are read from their arrays.
  void mark_kept(const std::vector<Var>& vars);
  // A row value of which there is one for each column.
  bool is_column(Var v) const;

  // One variable's definition, or the write of a store.
  std::string definition(Var v, const std::string& index);
  // All that `roots` need inside of a loop, and what becomes of them: stores
  // write, reductions fold into their column, values go to their arrays.
  std::string with_operands(const std::vector<Var>& roots,
                            const std::string& index);
  std::string operands_of(const std::vector<Var>& roots,
                          const std::string& index);
  // Statements that set far32 and far64 where an argument of a sine is huge.
  std::string far_checks(const std::vector<Var>& roots,
                         const std::string& index);
  std::string initial(Var reduce);
  // place = combine(place, operand)
  std::string fold(Var reduce, const std::string& place);
  // The function combine(a, b), of numbers and, where its text means something
  // for them, of vectors.
  std::string meeting(Var reduce);
  // Additions, roughly, of what these need in a loop.
  int work_of(const std::vector<Var>& roots) const;
  // Whether all loads with bounds or by pairs that these need read memory of
  // their buffers, chosen or not, in a loop of `steps`; empty if there are
  // none.
  std::string reads_buffers(const std::vector<Var>& roots,
                            const std::string& steps) const;
  // The loop that is printed next is one where that holds.
  void stay_in_buffers(bool stay) { in_buffers_ = stay; }

 protected:
  struct Needs {
    std::vector<Var> defined;  // in this loop
    std::vector<Var> read;     // from arrays
  };
  Needs needs_of(const std::vector<Var>& roots, bool with_roots) const;
  // Of a load or a store, from the pointer at the outer point on.
  virtual std::string place(Var v, const std::string& index) const;

 private:
  void collect(Var v, Needs& needs, std::vector<bool>& seen) const;
  std::string read_array(Var v, const std::string& index) const;
  std::string expression(Var v);
  std::string value(Var v, const std::string& index);
  std::string index_of(size_t axis, const std::string& index) const;
  std::string offset(Var v, const std::string& index) const;
  std::string raw_offset(Var v, const std::string& index) const;
  std::string index_in(const Bound& bound, const std::string& index) const;
  std::string element(Var v, const std::string& text) const;
  std::string load(Var v, const std::string& index) const;
  std::string bounded_load(Var v, const std::string& index);
  void find_pairs();
  std::string finish(Var v);
  expr::CppBlock combined(Var v);
  expr::Kinds kinds_of(Var v) const;
  expr::CppTypes types_of(Var v) const;
  void far_arguments(expr::Id id, std::vector<expr::Id>& out) const;

  Program& p_;
  const Schedule& s_;
  NumberNames& name_;
  std::vector<bool> in_array_;
  // Note [Pairs]
  // Every second element of a row is one half of an integer of twice its size,
  // and those lie one after the other. g++ reads steps of two by whole vectors
  // where the loop reads both halves, but the last ones of a row one by one
  // where it reads only one.
  std::vector<bool> by_pairs_;
  bool in_buffers_ = false;
};

}  // namespace taeda::compiler::loops
