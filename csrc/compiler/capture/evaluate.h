// What the operations of the evaluator share. Each file ops_*.cpp adds those of
// one kind to the table.
#pragma once

#include <taeda/csrc/compiler/capture/interpreter.h>

namespace taeda::capture {

struct Machine {
  Capture* capture;
  Frames& frames;
  Frame& f;
  Ref& result;
  std::unique_ptr<Frame> pending = nullptr;

  PyObject* name(int i) const {
    return PyTuple_GET_ITEM(f.info->object()->co_names, i);
  }
  // A local variable, looked at for the first time if need be; borrowed.
  PyObject* slot(int i) const;
};
using Operation = Flow(Machine& m, int argument);

// Each has a part for all versions of the interpreter and one for each that
// numbers or arranges things differently; what is called is the same.
void add_stack_operations(Operation** table);
void add_pattern_operations(Operation** table);
void add_name_operations(Operation** table);
void add_call_operations(Operation** table);
void add_control_operations(Operation** table);

// Of CALL_INTRINSIC_1, which 3.12 brought, by its argument.
bool has_intrinsic(int which);

// Continues at the handler of the failing instruction; false without one.
bool handle_exception(Frame& f);

// A call; null when it began a frame of its own instead.
Ref call(Machine& m,
         PyObject* callable,
         PyObject* const* args,
         size_t count,
         PyObject* names);
// One that no graph holds: Note [Frames of calls].
Ref call_in_frames(const Frames& frames,
                   PyObject* callable,
                   PyObject* const* args,
                   size_t count,
                   PyObject* names);
// What a function of Python's gives for arguments of which one has symbols
// (their plain type for `type`); null where none has, or for other functions.
Ref symbolic_call(PyObject* callable, PyObject* const* args, size_t count);
// Whether C code may call this while a graph is captured; ends it if not.
void check_native(Capture* c, PyObject* callable);
Ref load_attribute(Machine& m, PyObject* object, PyObject* name);
// What CALL finds below its arguments: 3.13 has the callable and its first
// argument or null there. Before, null came first where there was no argument.
void push_callable(Frame& f, Ref callable);
// The same of an attribute, where a bound method is taken apart.
void push_method(Frame& f, Ref attribute);

}  // namespace taeda::capture
