// Graphs inside graphs, and calls that Python code of the compiler writes.
//
// Note [Pieces]
// A function that an operator takes (checkpoint, cond, autograd.Function, ...)
// is evaluated like any other; what it recorded is then cut off the graph and
// becomes a graph of its own, whose inputs are the nodes that it read. The
// operator's call is one node with that graph among its arguments. A piece must
// leave nothing else behind: where it changed outside objects the graph ends.
#pragma once

#include <taeda/csrc/compiler/capture/capture.h>

namespace taeda::capture {

// Where a piece begins.
struct Mark {
  size_t calls, shadows, globals;
  Modes modes;
  std::vector<Ref> contents;                           // of the stand-ins
  std::vector<std::pair<PyObject*, PyObject*>> cells;  // outer, content
  // Of variables that the program made meanwhile: what they hold, and what was
  // in that.
  struct Own {
    Ref cell, content, inside;
  };
  std::vector<Own> own;
};
Mark begin_piece(Capture& c);

// A graph as a function of its inputs, which returns a tuple.
struct Piece {
  Graph graph;
  std::vector<int> outputs;
};
struct CutPiece {
  Ref object;
  std::vector<int> free;  // nodes of the outer graph that are its last inputs
};
// `outputs` are tensors, `arguments` the nodes that its first inputs stand for;
// throws where the piece left something behind.
CutPiece end_piece(Capture& c,
                   const Mark& mark,
                   PyObject* outputs,
                   const std::vector<int>& arguments = {});

// Adds a call whose results stand in `result`. Arguments may be nodes, and
// outside objects.
void emit(Capture& c,
          PyObject* function,
          PyObject* args,
          PyObject* kwargs,
          PyObject* result);

// What the compiler's own code does in place of a call, as Python functions in
// the library's table; null where the call is like any other.
Ref intercept(Capture& c,
              PyObject* callable,
              PyObject* const* args,
              size_t count,
              PyObject* names);

// For Python: the functions of the module that such code calls.
extern PyMethodDef piece_functions[];
PyTypeObject* make_piece_type();

}  // namespace taeda::capture
