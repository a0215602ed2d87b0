// Instructions that compute with what is on the stack.
#include <taeda/csrc/compiler/capture/evaluate.h>

#include <opcode.h>

#include <algorithm>

namespace taeda::capture {
namespace {

using Binary = PyObject*(PyObject*, PyObject*);

PyObject* power(PyObject* a, PyObject* b) {
  return PyNumber_Power(a, b, Py_None);
}
PyObject* power_in_place(PyObject* a, PyObject* b) {
  return PyNumber_InPlacePower(a, b, Py_None);
}

// By the numbers of BINARY_OP.
Binary* const binaries[] = {PyNumber_Add,
                            PyNumber_And,
                            PyNumber_FloorDivide,
                            PyNumber_Lshift,
                            PyNumber_MatrixMultiply,
                            PyNumber_Multiply,
                            PyNumber_Remainder,
                            PyNumber_Or,
                            power,
                            PyNumber_Rshift,
                            PyNumber_Subtract,
                            PyNumber_TrueDivide,
                            PyNumber_Xor,
                            PyNumber_InPlaceAdd,
                            PyNumber_InPlaceAnd,
                            PyNumber_InPlaceFloorDivide,
                            PyNumber_InPlaceLshift,
                            PyNumber_InPlaceMatrixMultiply,
                            PyNumber_InPlaceMultiply,
                            PyNumber_InPlaceRemainder,
                            PyNumber_InPlaceOr,
                            power_in_place,
                            PyNumber_InPlaceRshift,
                            PyNumber_InPlaceSubtract,
                            PyNumber_InPlaceTrueDivide,
                            PyNumber_InPlaceXor};

// Replaces the n topmost values by a result. Operands stay on the stack until
// it is there: code that C calls may end the graph at this instruction.
Flow replace(Machine& m, int n, PyObject* owned) {
  Ref out = checked(owned);
  for (int i = 0; i < n; ++i) m.f.pop();
  m.f.push(out.release());
  return Flow::Next;
}
Flow replace_two(Machine& m, PyObject* owned) { return replace(m, 2, owned); }
Flow replace_one(Machine& m, PyObject* owned) { return replace(m, 1, owned); }
PyObject* truth_of(PyObject* o) {
  int truth = PyObject_IsTrue(o);
  python::check_status(truth);
  return PyBool_FromLong(truth);
}
// 3.13 makes a bool before it jumps. A tensor is left to the jump, which knows
// what to do with it in all versions.
bool jump_asks([[maybe_unused]] Machine& m, [[maybe_unused]] PyObject* o) {
#if PY_VERSION_HEX >= 0x030D0000
  uint8_t next = m.f.info->bytes()[2 * m.f.next];
  bool jumps = next == POP_JUMP_IF_TRUE || next == POP_JUMP_IF_FALSE;
  return m.capture != nullptr && jumps && is_tensor(o);
#else
  return false;
#endif
}

// Null where the operator is the operands' business.
Ref recorded(Machine& m, int which, int count) {
  if (m.capture == nullptr) return {};
  return m.capture->record_operator(which, &m.f.peek(count));
}
// Of the topmost values, which an instruction tells from others.
void pin(Machine& m, int count) {
  for (int i = 1; m.capture != nullptr && i <= count; ++i) {
    m.capture->pin(m.f.peek(i));
  }
}
Flow binary(Machine& m, int i) {
  if (Ref out = recorded(m, i, 2)) return replace_two(m, out.release());
  return replace_two(m, binaries[i](m.f.peek(2), m.f.peek(1)));
}
// An array that was made inside takes elements of another one at once, and what
// stands for that has none.
void refuse_stand_in(Machine& m, PyObject* array, PyObject* given) {
  if (m.capture == nullptr || is_array(array)) return;
  if (strcmp(Py_TYPE(array)->tp_name, "numpy.ndarray") != 0) return;
  bool found = is_array(given);
  if (PyTuple_CheckExact(given)) {
    auto items = python::items_of(given);
    found = std::any_of(items.begin(), items.end(), is_array);
  }
  if (found) break_graph("an array decides about one that was made inside");
}
Flow subscript(Machine& m, int) {
  pin(m, 1);
  refuse_stand_in(m, m.f.peek(2), m.f.peek(1));
  return replace_two(m, PyObject_GetItem(m.f.peek(2), m.f.peek(1)));
}
// Below the operator stand bits for the interpreter: four in 3.12, and in 3.13
// another one that asks for a bool.
Flow compare(Machine& m, int argument) {
  int which = kPython313   ? argument >> 5
              : kPython312 ? argument >> 4
                           : argument;
  if (PyFunction_Check(m.f.peek(1)) && PyFunction_Check(m.f.peek(2))) pin(m, 2);
  Ref out = recorded(m, kLess + which, 2);
  if (!out) {
    out = checked(PyObject_RichCompare(m.f.peek(2), m.f.peek(1), which));
  }
  bool to_bool = kPython313 && (argument & 16) && !jump_asks(m, out.get());
  return replace_two(m, to_bool ? truth_of(out.get()) : out.release());
}
Flow identity(Machine& m, int negated) {
  if (PyFunction_Check(m.f.peek(1)) && PyFunction_Check(m.f.peek(2))) pin(m, 2);
  bool same = m.f.peek(2) == m.f.peek(1);
  return replace_two(m, PyBool_FromLong(same != (negated != 0)));
}
Flow contains(Machine& m, int negated) {
  if (m.capture != nullptr && PyFunction_Check(m.f.peek(2))) {
    while (!m.capture->made_anew.empty()) {
      m.capture->pin(m.capture->made_anew.begin()->first);
    }
  }
  int found = PySequence_Contains(m.f.peek(1), m.f.peek(2));
  python::check_status(found);
  return replace_two(m, PyBool_FromLong((found != 0) != (negated != 0)));
}
template <PyObject* f(PyObject*), int operator_number = -1>
Flow unary(Machine& m, int) {
  if (operator_number >= 0) {
    Ref out = recorded(m, operator_number, 1);
    if (out) return replace_one(m, out.release());
  }
  return replace_one(m, f(m.f.peek(1)));
}
Flow invert_truth(Machine& m, int) {
  int truth = PyObject_IsTrue(m.f.peek(1));
  python::check_status(truth);
  return replace_one(m, PyBool_FromLong(!truth));
}

Flow store_subscript(Machine& m, int) {
  pin(m, 1);
  refuse_stand_in(m, m.f.peek(2), m.f.peek(1));
  refuse_stand_in(m, m.f.peek(2), m.f.peek(3));
  python::check_status(PyObject_SetItem(m.f.peek(2), m.f.peek(1), m.f.peek(3)));
  for (int i = 0; i < 3; ++i) m.f.pop();
  return Flow::Next;
}
Flow delete_subscript(Machine& m, int) {
  pin(m, 1);
  python::check_status(PyObject_DelItem(m.f.peek(2), m.f.peek(1)));
  m.f.pop();
  m.f.pop();
  return Flow::Next;
}

Flow copy(Machine& m, int n) {
  m.f.push(Py_NewRef(m.f.peek(n)));
  return Flow::Next;
}
Flow swap(Machine& m, int n) {
  std::swap(m.f.peek(1), m.f.peek(n));
  return Flow::Next;
}
Flow pop_top(Machine& m, int) {
  m.f.pop();
  return Flow::Next;
}
Flow push_null(Machine& m, int) {
  m.f.push(nullptr);
  return Flow::Next;
}
Flow nothing(Machine&, int) { return Flow::Next; }

// A container of the n topmost values, which it takes over.
template <class Make>
Flow build(Machine& m, int n, Make make) {
  PyObject** from = m.f.stack() + m.f.depth - n;
  Ref out = make(from);
  for (int i = 0; i < n; ++i) m.f.pop();
  m.f.push(out.release());
  return Flow::Next;
}
Flow build_tuple(Machine& m, int n) {
  return build(m, n, [&](PyObject** from) {
    return python::new_tuple(n, [&](size_t i) { return Py_NewRef(from[i]); });
  });
}
Flow build_list(Machine& m, int n) {
  return build(m, n, [&](PyObject** from) {
    return python::new_list(n, [&](size_t i) { return Py_NewRef(from[i]); });
  });
}
Flow build_set(Machine& m, int n) {
  pin(m, n);
  return build(m, n, [&](PyObject** from) {
    Ref out = checked(PySet_New(nullptr));
    for (int i = 0; i < n; ++i) {
      python::check_status(PySet_Add(out.get(), from[i]));
    }
    return out;
  });
}
Flow build_map(Machine& m, int n) {
  pin(m, 2 * n);
  return build(m, 2 * n, [&](PyObject** from) {
    Ref out = checked(PyDict_New());
    for (int i = 0; i < n; ++i) {
      python::check_status(
          PyDict_SetItem(out.get(), from[2 * i], from[2 * i + 1]));
    }
    return out;
  });
}
Flow build_const_key_map(Machine& m, int n) {
  return build(m, n + 1, [&](PyObject** from) {
    Ref out = checked(PyDict_New());
    for (int i = 0; i < n; ++i) {
      PyObject* key = PyTuple_GET_ITEM(from[n], i);
      python::check_status(PyDict_SetItem(out.get(), key, from[i]));
    }
    return out;
  });
}
Flow build_string(Machine& m, int n) {
  return build(m, n, [&](PyObject** from) {
    Ref parts =
        python::new_tuple(n, [&](size_t i) { return Py_NewRef(from[i]); });
    Ref empty = python::new_text("");
    return checked(PyUnicode_Join(empty.get(), parts.get()));
  });
}
Flow build_slice(Machine& m, int n) {
  return build(m, n, [&](PyObject** from) {
    return checked(PySlice_New(from[0], from[1], n == 3 ? from[2] : nullptr));
  });
}

// X adds the topmost value to the container n below it.
template <int f(PyObject*, PyObject*)>
Flow add_item(Machine& m, int n) {
  if (f == PySet_Add) pin(m, 1);
  python::check_status(f(m.f.peek(n + 1), m.f.peek(1)));
  m.f.pop();
  return Flow::Next;
}
int list_extend(PyObject* list, PyObject* items) {
  Ref done(call_method(list, "extend", items));
  return done ? 0 : -1;
}
int set_update(PyObject* set, PyObject* items) {
  Ref done(call_method(set, "update", items));
  return done ? 0 : -1;
}
int dict_merge(PyObject* dict, PyObject* items) {
  Py_ssize_t before = PyDict_GET_SIZE(dict);
  Ref keys(PyMapping_Keys(items));
  if (!keys || PyDict_Update(dict, items) < 0) return -1;
  if (PyDict_GET_SIZE(dict) == before + PyList_GET_SIZE(keys.get())) return 0;
  PyErr_SetString(PyExc_TypeError,
                  "got multiple values for a keyword argument");
  return -1;
}
Flow map_add(Machine& m, int n) {
  pin(m, 2);
  python::check_status(
      PyDict_SetItem(m.f.peek(n + 2), m.f.peek(2), m.f.peek(1)));
  m.f.pop();
  m.f.pop();
  return Flow::Next;
}

Flow unpack_sequence(Machine& m, int n) {
  Ref items = checked(PySequence_List(m.f.peek(1)));
  Py_ssize_t size = PyList_GET_SIZE(items.get());
  if (size != n) {
    if (size < n) {
      PyErr_Format(PyExc_ValueError,
                   "not enough values to unpack (expected %d, got %zd)",
                   n,
                   size);
    } else {
      PyErr_Format(
          PyExc_ValueError, "too many values to unpack (expected %d)", n);
    }
    return Flow::Failed;
  }
  m.f.pop();
  for (int i = n - 1; i >= 0; --i) {
    m.f.push(Py_NewRef(PyList_GET_ITEM(items.get(), i)));
  }
  return Flow::Next;
}

Flow unpack_ex(Machine& m, int argument) {
  int before = argument & 255;
  int after = argument >> 8;
  Ref items = checked(PySequence_List(m.f.peek(1)));
  auto size = static_cast<int>(PyList_GET_SIZE(items.get()));
  if (size < before + after) {
    PyErr_Format(PyExc_ValueError,
                 "not enough values to unpack (expected at least %d, got %d)",
                 before + after,
                 size);
    return Flow::Failed;
  }
  m.f.pop();
  for (int i = size - 1; i >= size - after; --i) {
    m.f.push(Py_NewRef(PyList_GET_ITEM(items.get(), i)));
  }
  m.f.push(
      checked(PyList_GetSlice(items.get(), before, size - after)).release());
  for (int i = before - 1; i >= 0; --i) {
    m.f.push(Py_NewRef(PyList_GET_ITEM(items.get(), i)));
  }
  return Flow::Next;
}

// By the numbers of the conversions !s, !r and !a; zero is none.
Ref convert(PyObject* value, int which) {
  if (which == 1) return checked(PyObject_Str(value));
  if (which == 2) return checked(PyObject_Repr(value));
  if (which == 3) return checked(PyObject_ASCII(value));
  return Ref::borrow(value);
}
#if PY_VERSION_HEX >= 0x030D0000
Flow convert_value(Machine& m, int which) {
  return replace_one(m, convert(m.f.peek(1), which).release());
}
Flow format_simple(Machine& m, int) {
  return replace_one(m, PyObject_Format(m.f.peek(1), nullptr));
}
Flow format_with_spec(Machine& m, int) {
  return replace_two(m, PyObject_Format(m.f.peek(2), m.f.peek(1)));
}
#else
Flow format_value(Machine& m, int flags) {
  bool with_spec = (flags & 4) != 0;
  PyObject* spec = with_spec ? m.f.peek(1) : nullptr;
  Ref text = convert(m.f.peek(1 + with_spec), flags & 3);
  return replace(m, 1 + with_spec, PyObject_Format(text.get(), spec));
}
#endif

#if PY_VERSION_HEX >= 0x030C0000
Flow binary_slice(Machine& m, int) {
  Ref slice = checked(PySlice_New(m.f.peek(2), m.f.peek(1), nullptr));
  return replace(m, 3, PyObject_GetItem(m.f.peek(3), slice.get()));
}
Flow store_slice(Machine& m, int) {
  Ref slice = checked(PySlice_New(m.f.peek(2), m.f.peek(1), nullptr));
  python::check_status(PyObject_SetItem(m.f.peek(3), slice.get(), m.f.peek(4)));
  for (int i = 0; i < 4; ++i) m.f.pop();
  return Flow::Next;
}

// A generator that is left by StopIteration would seem to have ended.
PyObject* of_stop_iteration(Machine& m, PyObject* error) {
  if (PyErr_GivenExceptionMatches(error, PyExc_StopIteration) == 0) {
    return Py_NewRef(error);
  }
  bool coroutine = (m.f.info->object()->co_flags & CO_COROUTINE) != 0;
  Ref made = checked(
      PyObject_CallFunction(PyExc_RuntimeError,
                            "s",
                            coroutine ? "coroutine raised StopIteration"
                                      : "generator raised StopIteration"));
  PyException_SetCause(made.get(), Py_NewRef(error));
  PyException_SetContext(made.get(), Py_NewRef(error));
  return made.release();
}

// The numbers of internal/pycore_intrinsics.h.
enum class Intrinsic { StopIterationError = 3, Positive = 5, ListToTuple = 6 };

Flow intrinsic(Machine& m, int which) {
  PyObject* value = m.f.peek(1);
  auto asked = static_cast<Intrinsic>(which);
  if (asked == Intrinsic::Positive) {
    return unary<PyNumber_Positive, kPositive>(m, 0);
  }
  if (asked == Intrinsic::ListToTuple) {
    return replace_one(m, PyList_AsTuple(value));
  }
  return replace_one(m, of_stop_iteration(m, value));
}
#endif
#if PY_VERSION_HEX >= 0x030D0000
Flow to_bool(Machine& m, int) {
  if (jump_asks(m, m.f.peek(1))) return Flow::Next;
  return replace_one(m, truth_of(m.f.peek(1)));
}
#endif

void add_stack_of_version(Operation** t) {
#if PY_VERSION_HEX >= 0x030C0000
  t[BINARY_SLICE] = binary_slice;
  t[STORE_SLICE] = store_slice;
  t[CALL_INTRINSIC_1] = intrinsic;
#else
  t[PRECALL] = nothing;
  t[UNARY_POSITIVE] = unary<PyNumber_Positive, kPositive>;
  t[LIST_TO_TUPLE] = unary<PyList_AsTuple>;
#endif
#if PY_VERSION_HEX >= 0x030D0000
  t[TO_BOOL] = to_bool;
  t[CONVERT_VALUE] = convert_value;
  t[FORMAT_SIMPLE] = format_simple;
  t[FORMAT_WITH_SPEC] = format_with_spec;
#else
  t[FORMAT_VALUE] = format_value;
#endif
}

}  // namespace

#if PY_VERSION_HEX >= 0x030C0000
bool has_intrinsic(int which) {
  auto asked = static_cast<Intrinsic>(which);
  return asked == Intrinsic::StopIterationError ||
         asked == Intrinsic::Positive || asked == Intrinsic::ListToTuple;
}
#endif

void add_stack_operations(Operation** t) {
  add_stack_of_version(t);
  t[BINARY_OP] = binary;
  t[BINARY_SUBSCR] = subscript;
  t[COMPARE_OP] = compare;
  t[IS_OP] = identity;
  t[CONTAINS_OP] = contains;
  t[UNARY_NEGATIVE] = unary<PyNumber_Negative, kNegative>;
  t[UNARY_INVERT] = unary<PyNumber_Invert, kInvert>;
  t[UNARY_NOT] = invert_truth;
  t[GET_ITER] = unary<PyObject_GetIter>;
  t[STORE_SUBSCR] = store_subscript;
  t[DELETE_SUBSCR] = delete_subscript;
  t[COPY] = copy;
  t[SWAP] = swap;
  t[POP_TOP] = pop_top;
  t[PUSH_NULL] = push_null;
  t[NOP] = t[RESUME] = t[CACHE] = nothing;
  t[BUILD_TUPLE] = build_tuple;
  t[BUILD_LIST] = build_list;
  t[BUILD_SET] = build_set;
  t[BUILD_MAP] = build_map;
  t[BUILD_CONST_KEY_MAP] = build_const_key_map;
  t[BUILD_STRING] = build_string;
  t[BUILD_SLICE] = build_slice;
  t[LIST_APPEND] = add_item<PyList_Append>;
  t[SET_ADD] = add_item<PySet_Add>;
  t[MAP_ADD] = map_add;
  t[LIST_EXTEND] = add_item<list_extend>;
  t[SET_UPDATE] = add_item<set_update>;
  t[DICT_UPDATE] = add_item<PyDict_Update>;
  t[DICT_MERGE] = add_item<dict_merge>;
  t[UNPACK_SEQUENCE] = unpack_sequence;
  t[UNPACK_EX] = unpack_ex;
}

}  // namespace taeda::capture
