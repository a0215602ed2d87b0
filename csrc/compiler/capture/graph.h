// A linear graph of calls of the library's functions.
#pragma once

#include <taeda/csrc/python/tensor_type.h>

#include <memory>
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
  enum Kind { Node, Constant, Tuple, List, Dict, Slice } kind = Constant;
  int node = -1;
  Ref object;  // the constant; the keys of a dict; the type of a tuple
  std::vector<Argument> items;
};

struct Call {
  Ref function;    // null for an input
  int input = -1;  // the place that it is read from
  std::vector<Argument> args;
  Ref names;  // of the last arguments, as vectorcall has them; or null
  std::vector<int> frees;  // nodes that no later one reads
  Ref file;
  int line = 0;
};

class Graph {
 public:
  int add_input(int place);
  int add_call(Call call);
  // Works out what is freed where; `outputs` live to the end.
  void finish(const std::vector<int>& outputs);
  // Values of all nodes that are still alive; `inputs` borrowed, by place.
  std::vector<Ref> run(const std::vector<Ref>& inputs) const;
  std::vector<Call>& calls() { return calls_; }
  const std::vector<Call>& calls() const { return calls_; }
  size_t call_count() const;

 private:
  std::vector<Call> calls_;
};

}  // namespace taeda::capture
