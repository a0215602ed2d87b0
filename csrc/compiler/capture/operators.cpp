// Calls in graphs as the program wrote them.
//
// Note [Calls as written]
// Tensors tell the function mode of `a * 4` that their method `mul` is called,
// and functions of the library tell it of all their arguments, defaults among
// them. A backend's graph says what stands in the program: `operator.mul` with
// the operands in their order, and `relu(x)`. So operators are recorded before
// a tensor is asked, and a function's node has the arguments of its caller.
// The nodes are named after the variables that the program keeps them in.
#include <taeda/csrc/compiler/capture/capture.h>

#include <algorithm>
#include <string_view>

namespace taeda::capture {
namespace {

// The functions of the module `operator` that graphs have, in the numbers of
// BINARY_OP first.
constexpr const char* kNames[] = {
    "add",      "and_", "floordiv", "lshift",    "matmul",  "mul",
    "mod",      "or_",  "pow",      "rshift",    "sub",     "truediv",
    "xor",      "iadd", "iand",     "ifloordiv", "ilshift", "imatmul",
    "imul",     "imod", "ior",      "ipow",      "irshift", "isub",
    "itruediv", "ixor", "lt",       "le",        "eq",      "ne",
    "gt",       "ge",   "neg",      "pos",       "invert",  "abs"};
constexpr int kCount = std::size(kNames);
static_assert(std::string_view(kNames[kLess]) == "lt");
static_assert(std::string_view(kNames[kNegative]) == "neg");
static_assert(kAbsolute == kCount - 1);

// Found once; never destroyed, which would be after the interpreter.
const std::vector<Ref>& functions() {
  static const auto& all = *[] {
    auto* found = new std::vector<Ref>();
    Ref module = checked(PyImport_ImportModule("operator"));
    for (const char* name : kNames) {
      found->push_back(python::attribute(module.get(), name));
    }
    return found;
  }();
  return all;
}

// Of a class that says nothing itself about what its operators do.
bool is_plain_tensor(PyObject* o) {
  const Library& lib = library();
  return type_of(o) == lib.tensor.get() || type_of(o) == lib.parameter.get();
}

bool is_operand(PyObject* o) {
  return is_plain_tensor(o) || PyBool_Check(o) || PyLong_CheckExact(o) ||
         PyFloat_CheckExact(o) || PyComplex_CheckExact(o) || is_symbol(o) ||
         is_sym_float(o);
}

// A mode that the program has entered is asked about methods.
bool is_recorder_first(Capture& c) {
  const Library& lib = library();
  Suspended suspended(c);
  Ref last = checked(PyObject_CallNoArgs(lib.last_mode.get()));
  return last.get() == lib.recorder.get();
}

}  // namespace

Ref Capture::record_operator(int which, PyObject* const* args) {
  size_t count = which < kNegative ? 2 : 1;
  if (suspended > 0 || !std::any_of(args, args + count, is_plain_tensor) ||
      !std::all_of(args, args + count, is_operand) ||
      !is_recorder_first(*this)) {
    return {};
  }
  std::vector<PyObject*> operands(args, args + count);
  // A number is not changed in place.
  bool in_place = which >= kInPlace && which < kLess;
  if (in_place && !is_tensor(args[0])) which -= kInPlace;
  if (which >= kLess && which < kNegative && !is_tensor(args[0])) {
    // The tensor is asked, by the other operator: > for <.
    static constexpr int turned[] = {4, 5, 2, 3, 0, 1};
    which = kLess + turned[which - kLess];
    std::swap(operands[0], operands[1]);
  }
  Ref all = python::new_tuple(count,
                              [&](size_t i) { return Py_NewRef(operands[i]); });
  Ref out(record(functions()[which].get(), all.get(), nullptr));
  bool changes = which >= kInPlace && which < kLess;
  if (changes && out.get() == operands[0]) {
    auto last = static_cast<int>(entry.graph.calls().size()) - 1;
    changed_last = {out.get(), last};
  }
  return out;
}

Ref Capture::call_operator(PyObject* callable,
                           PyObject* const* args,
                           size_t count) {
  if (!PyCFunction_Check(callable)) return {};
  const auto& all = functions();
  auto at = std::find_if(all.begin(), all.end(), [&](const Ref& each) {
    return each.get() == callable;
  });
  auto which = static_cast<int>(at - all.begin());
  Ref abs = python::attribute(library().builtins.get(), "abs");
  if (callable == abs.get()) which = kAbsolute;
  if (which >= kCount || count != (which < kNegative ? 2 : 1)) return {};
  return record_operator(which, args);
}

namespace {

// Whether a node may hold it as it is: what a function was given may be an
// iterator, which it has run through by now.
bool is_held(Capture& c, PyObject* o) {
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    auto items = python::items_of(o);
    return std::all_of(items.begin(), items.end(), [&](PyObject* each) {
      return is_held(c, each);
    });
  }
  return is_shared(o) || c.nodes.contains(o) || is_symbol(o) || is_sym_float(o);
}

}  // namespace

bool Capture::is_written(const Written& w) {
  size_t named = w.names == nullptr ? 0 : PyTuple_GET_SIZE(w.names);
  return std::all_of(w.args, w.args + w.count + named, [&](PyObject* each) {
    return is_held(*this, each);
  });
}

Call Capture::call_as_written(const Written& w) {
  Call call;
  call.function = Ref::borrow(w.function);
  size_t named = w.names == nullptr ? 0 : PyTuple_GET_SIZE(w.names);
  for (size_t i = 0; i < w.count + named; ++i) {
    call.args.push_back(argument(w.args[i]));
  }
  if (named > 0) call.names = Ref::borrow(w.names);
  return call;
}

void Capture::name_variable(PyObject* value, PyObject* name) {
  int node = -1;
  if (changed_last.first == value) {
    node = std::exchange(changed_last, {nullptr, -1}).second;
  } else if (auto at = nodes.find(value); at != nodes.end()) {
    node = at->second;
  }
  if (node < 0) return;
  Call& call = entry.graph.calls()[node];
  if (call.function && !call.variable) call.variable = Ref::borrow(name);
}

}  // namespace taeda::capture
