// Instructions that compute with what is on the stack.
#include <taeda/csrc/compiler/capture/evaluate.h>

#include <opcode.h>

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

// Replaces the two topmost values by a result. Operands stay on the stack until
// it is there: code that C calls may end the graph at this instruction.
Flow replace_two(Machine& m, PyObject* owned) {
  Ref out = checked(owned);
  m.f.pop();
  m.f.pop();
  m.f.push(out.release());
  return Flow::Next;
}
Flow replace_one(Machine& m, PyObject* owned) {
  Ref out = checked(owned);
  m.f.pop();
  m.f.push(out.release());
  return Flow::Next;
}

Flow binary(Machine& m, int i) {
  return replace_two(m, binaries[i](m.f.peek(2), m.f.peek(1)));
}
Flow subscript(Machine& m, int) {
  return replace_two(m, PyObject_GetItem(m.f.peek(2), m.f.peek(1)));
}
Flow compare(Machine& m, int i) {
  return replace_two(m, PyObject_RichCompare(m.f.peek(2), m.f.peek(1), i));
}
Flow identity(Machine& m, int negated) {
  bool same = m.f.peek(2) == m.f.peek(1);
  return replace_two(m, PyBool_FromLong(same != (negated != 0)));
}
Flow contains(Machine& m, int negated) {
  int found = PySequence_Contains(m.f.peek(1), m.f.peek(2));
  python::check_status(found);
  return replace_two(m, PyBool_FromLong((found != 0) != (negated != 0)));
}
template <PyObject* f(PyObject*)>
Flow unary(Machine& m, int) {
  return replace_one(m, f(m.f.peek(1)));
}
Flow invert_truth(Machine& m, int) {
  int truth = PyObject_IsTrue(m.f.peek(1));
  python::check_status(truth);
  return replace_one(m, PyBool_FromLong(!truth));
}

Flow store_subscript(Machine& m, int) {
  python::check_status(PyObject_SetItem(m.f.peek(2), m.f.peek(1), m.f.peek(3)));
  for (int i = 0; i < 3; ++i) m.f.pop();
  return Flow::Next;
}
Flow delete_subscript(Machine& m, int) {
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
  return build(m, n, [&](PyObject** from) {
    Ref out = checked(PySet_New(nullptr));
    for (int i = 0; i < n; ++i) {
      python::check_status(PySet_Add(out.get(), from[i]));
    }
    return out;
  });
}
Flow build_map(Machine& m, int n) {
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

Flow format_value(Machine& m, int flags) {
  Ref spec = (flags & 4) ? m.f.pop() : Ref();
  PyObject* value = m.f.peek(1);
  Ref text = Ref::borrow(value);
  if ((flags & 3) == 1) text = checked(PyObject_Str(value));
  if ((flags & 3) == 2) text = checked(PyObject_Repr(value));
  if ((flags & 3) == 3) text = checked(PyObject_ASCII(value));
  return replace_one(m, PyObject_Format(text.get(), spec.get()));
}

Flow get_len(Machine& m, int) {
  Py_ssize_t n = PyObject_Size(m.f.peek(1));
  if (n < 0) return Flow::Failed;
  m.f.push(PyLong_FromSsize_t(n));
  return Flow::Next;
}
template <unsigned long flag>
Flow match_kind(Machine& m, int) {
  bool is = (Py_TYPE(m.f.peek(1))->tp_flags & flag) != 0;
  m.f.push(PyBool_FromLong(is));
  return Flow::Next;
}
Flow match_keys(Machine& m, int) {
  PyObject* keys = m.f.peek(1);
  std::vector<Ref> found;
  for (PyObject* key : python::items_of(keys)) {
    Ref value(PyObject_GetItem(m.f.peek(2), key));
    if (!value) {
      if (!PyErr_ExceptionMatches(PyExc_KeyError)) return Flow::Failed;
      PyErr_Clear();
      m.f.push(python::none());
      return Flow::Next;
    }
    found.push_back(std::move(value));
  }
  m.f.push(python::new_tuple(found.size(), [&](size_t i) {
             return found[i].release();
           }).release());
  return Flow::Next;
}

// Names of the attributes that a class pattern reads; null for the subject.
Ref names_of_pattern(Machine& m, PyObject* type, int count, PyObject* named) {
  Ref out = checked(PyList_New(0));
  const char* name = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  Ref given;
  if (count > 0) {
    try {
      given = load_attribute(m, type, python::interned<"__match_args__">());
    } catch (const PythonError&) {
      if (is_break() || !PyErr_ExceptionMatches(PyExc_AttributeError)) throw;
      PyErr_Clear();
      given = checked(PyTuple_New(0));
      auto flags = reinterpret_cast<PyTypeObject*>(type)->tp_flags;
      if (flags & _Py_TPFLAGS_MATCH_SELF) {
        given = checked(PyTuple_Pack(1, Py_None));
      }
    }
    if (!PyTuple_CheckExact(given.get())) {
      PyErr_Format(PyExc_TypeError,
                   "%s.__match_args__ must be a tuple (got %s)",
                   name,
                   Py_TYPE(given.get())->tp_name);
      throw PythonError();
    }
    auto allowed = static_cast<int>(PyTuple_GET_SIZE(given.get()));
    if (allowed < count) {
      PyErr_Format(PyExc_TypeError,
                   "%s() accepts %d positional sub-pattern%s (%d given)",
                   name,
                   allowed,
                   allowed == 1 ? "" : "s",
                   count);
      throw PythonError();
    }
    given = checked(PyTuple_GetSlice(given.get(), 0, count));
    python::check_status(list_extend(out.get(), given.get()));
  }
  python::check_status(list_extend(out.get(), named));
  return out;
}

Ref match_attributes(Machine& m,
                     PyObject* subject,
                     PyObject* names,
                     const char* type) {
  Ref out = checked(PyList_New(0));
  Ref seen = checked(PySet_New(nullptr));
  for (PyObject* name : python::items_of(names)) {
    Ref value = Ref::borrow(subject);
    if (name != Py_None) {
      if (!PyUnicode_CheckExact(name)) {
        PyErr_Format(PyExc_TypeError,
                     "__match_args__ elements must be strings (got %s)",
                     Py_TYPE(name)->tp_name);
        throw PythonError();
      }
      if (PySet_Contains(seen.get(), name) == 1) {
        PyErr_Format(PyExc_TypeError,
                     "%s() got multiple sub-patterns for attribute %R",
                     type,
                     name);
        throw PythonError();
      }
      python::check_status(PySet_Add(seen.get(), name));
      try {
        value = load_attribute(m, subject, name);
      } catch (const PythonError&) {
        if (is_break() || !PyErr_ExceptionMatches(PyExc_AttributeError)) throw;
        PyErr_Clear();
        return Ref::borrow(Py_None);
      }
    }
    python::check_status(PyList_Append(out.get(), value.get()));
  }
  return checked(PyList_AsTuple(out.get()));
}

Flow match_class(Machine& m, int count) {
  PyObject* type = m.f.peek(2);
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "called match pattern must be a type");
    return Flow::Failed;
  }
  int is = PyObject_IsInstance(m.f.peek(3), type);
  python::check_status(is);
  Ref out = Ref::borrow(Py_None);
  if (is != 0) {
    Ref names = names_of_pattern(m, type, count, m.f.peek(1));
    const char* name = reinterpret_cast<PyTypeObject*>(type)->tp_name;
    out = match_attributes(m, m.f.peek(3), names.get(), name);
  }
  m.f.pop();
  return replace_two(m, out.release());
}

}  // namespace

void add_stack_operations(Operation** t) {
  t[BINARY_OP] = binary;
  t[BINARY_SUBSCR] = subscript;
  t[COMPARE_OP] = compare;
  t[IS_OP] = identity;
  t[CONTAINS_OP] = contains;
  t[UNARY_NEGATIVE] = unary<PyNumber_Negative>;
  t[UNARY_POSITIVE] = unary<PyNumber_Positive>;
  t[UNARY_INVERT] = unary<PyNumber_Invert>;
  t[UNARY_NOT] = invert_truth;
  t[LIST_TO_TUPLE] = unary<PyList_AsTuple>;
  t[GET_ITER] = unary<PyObject_GetIter>;
  t[STORE_SUBSCR] = store_subscript;
  t[DELETE_SUBSCR] = delete_subscript;
  t[COPY] = copy;
  t[SWAP] = swap;
  t[POP_TOP] = pop_top;
  t[PUSH_NULL] = push_null;
  t[NOP] = t[RESUME] = t[CACHE] = t[PRECALL] = nothing;
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
  t[FORMAT_VALUE] = format_value;
  t[GET_LEN] = get_len;
  t[MATCH_MAPPING] = match_kind<Py_TPFLAGS_MAPPING>;
  t[MATCH_SEQUENCE] = match_kind<Py_TPFLAGS_SEQUENCE>;
  t[MATCH_KEYS] = match_keys;
  t[MATCH_CLASS] = match_class;
}

}  // namespace taeda::capture
