// A linear graph of calls of the library's functions.
#pragma once

#include <taeda/csrc/compiler/capture/sizes.h>

#include <memory>
#include <span>
#include <vector>

namespace taeda::capture {

using python::checked;
using python::PythonError;
using python::Ref;

// A call of a method with one argument, whatever that is: formats of
// PyObject_CallMethod take a tuple apart. A new reference, or null.
inline PyObject* call_method(PyObject* o,
                             const char* name,
                             PyObject* argument) {
  Ref text(PyUnicode_InternFromString(name));
  return text ? PyObject_CallMethodOneArg(o, text.get(), argument) : nullptr;
}

// An argument: the value of a node, a constant, or a container of arguments.
struct Argument {
  enum Kind {
    Node,
    Constant,
    Tuple,
    List,
    Dict,
    Slice,
    Size,   // what program `node` computes of the symbols
    Apply,  // `object` called with the items: a float that depends on symbols
  } kind = Constant;
  int node = -1;
  // The constant; the keys of a dict; the type of a tuple; what is called.
  Ref object;
  std::vector<Argument> items;
};

struct Call {
  Ref function;    // null for an input, and for what only a piece reads
  int input = -1;  // the place that it is read from
  std::vector<Argument> args;
  Ref names;  // of the last arguments, as vectorcall has them; or null
  std::vector<int> frees;  // nodes that no later one reads
  int defines = -1;        // the symbol whose value it is
  Ref variable;            // the program's name of the result, or null
  Ref kind;                // the class of the result, where a program made it
  Ref file;
  int line = 0;
};

class Graph {
 public:
  int add_input(int place);
  int add_call(Call call);
  // A number for what stands for an argument of a piece.
  int add_nothing() { return add_call({}); }
  // Works out what is freed where; `outputs` live to the end.
  void finish(const std::vector<int>& outputs);
  // Values of all nodes that are still alive; `inputs` borrowed, by place.
  // Writes the values of symbols that come from data.
  std::vector<Ref> run(std::span<const Ref> inputs, SizeValues& sizes) const;
  std::vector<Call>& calls() { return calls_; }
  const std::vector<Call>& calls() const { return calls_; }
  size_t call_count() const;
  // Whether a call or the end reads a node; known once it is finished.
  bool is_read(size_t node) const;

 private:
  std::vector<Call> calls_;
};

}  // namespace taeda::capture
