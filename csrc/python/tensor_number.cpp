// Operators of the Python language on tensors.
#include <taeda/csrc/python/tensor_functions.h>

namespace taeda::python {

namespace {
// The functions behind the operators, looked up when first used.
template <FixedName Name>
const Function& function() {
  static const Function* const found = find_function(Name.text);
  if (TAEDA_UNLIKELY(found == nullptr)) {
    throw_error(ErrorKind::NotImplemented,
                message("the operator {} does not exist yet", Name.text));
  }
  return *found;
}

template <FixedName Name>
PyObject* call_method(PyObject* self, PyObject* other) {
  return guarded([&] {
    return call_operator({&function<Name>(), self, &other, 1, nullptr});
  });
}
template <FixedName Name>
PyObject* call_free(PyObject* a, PyObject* b) {
  return guarded([&] {
    PyObject* args[] = {a, b};
    return call_operator({&function<Name>(), nullptr, args, 2, nullptr});
  });
}

// A subclass on the right may override even where the left is a tensor; binding
// sees to that. With a tensor on the right alone, `Reflected` is tried.
template <FixedName Name>
PyObject* commutative(PyObject* a, PyObject* b) {
  return is_tensor(a) ? call_method<Name>(a, b) : call_method<Name>(b, a);
}
template <FixedName Name>
PyObject* ordered(PyObject* a, PyObject* b) {
  return is_tensor(a) ? call_method<Name>(a, b) : call_free<Name>(a, b);
}
PyObject* subtract(PyObject* a, PyObject* b) {
  return is_tensor(a) ? call_method<"sub">(a, b) : call_free<"rsub">(b, a);
}
PyObject* true_divide(PyObject* a, PyObject* b) {
  if (is_tensor(a)) return call_method<"div">(a, b);
  if (!is_scalar_like(a)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* inverse = guarded([&] {
    return call_function({&function<"reciprocal">(), b, nullptr, 0, nullptr});
  });
  if (inverse == nullptr) return nullptr;
  Ref owned(inverse);
  return call_method<"mul">(inverse, a);
}
PyObject* power(PyObject* a, PyObject* b, PyObject*) {
  return ordered<"pow">(a, b);
}
PyObject* power_inplace(PyObject* a, PyObject* b, PyObject*) {
  return call_method<"pow_">(a, b);
}
template <FixedName Name>
PyObject* unary(PyObject* self) {
  return guarded([&] {
    return call_function({&function<Name>(), self, nullptr, 0, nullptr});
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  static constexpr binaryfunc kByOp[] = {call_method<"lt">,
                                         call_method<"le">,
                                         call_method<"eq">,
                                         call_method<"ne">,
                                         call_method<"gt">,
                                         call_method<"ge">};
  return kByOp[op](a, b);
}

// Numbers
// ----------------------------------------------------------------------

// A slot that gives an object, of the tensor or of whoever overrides the
// method.
template <FixedName Name, PyObject* (*Body)(const TensorBase&)>
PyObject* object_slot(PyObject* self) {
  return query_entry<Name, Body>(self, nullptr);
}

int truth(PyObject* self) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    Ref out(override_method(self, "__bool__"));
    return out ? PyObject_IsTrue(out.get()) : -1;
  }
  const TensorBase& t = unwrap(self);
  bool result = false;
  int status = guarded_status([&] {
    TAEDA_CHECK(t.numel() != 0,
                "Boolean value of Tensor with no values is ambiguous");
    TAEDA_CHECK(t.numel() == 1,
                "Boolean value of Tensor with more than one value is "
                "ambiguous");
    Scalar s = item_of(t);
    result = s.is_complex() ? !s.equal(0.0) : s.to_double() != 0;
  });
  return status < 0 ? -1 : result;
}

void check_one_element(const TensorBase& t) {
  TAEDA_CHECK_AS(Value,
                 t.numel() == 1,
                 "only one element tensors can be converted to Python scalars");
}
PyObject* to_long(const TensorBase& t) {
  check_one_element(t);
  return PyNumber_Long(checked(item_object(t)).get());
}
PyObject* to_float(const TensorBase& t) {
  check_one_element(t);
  return PyFloat_FromDouble(item_of(t).to_double());
}
PyObject* to_index(const TensorBase& t) {
  TAEDA_CHECK_AS(
      Type,
      is_integral(t.dtype(), /*include_bool=*/true) && t.numel() == 1,
      "only integer tensors of a single element can be converted to an index");
  return PyNumber_Index(checked(item_object(t)).get());
}

// Containers -----------------------------------------------------------------

Py_ssize_t length(PyObject* self) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    Ref out(override_method(self, "__len__"));
    return out ? PyLong_AsSsize_t(out.get()) : -1;
  }
  const TensorBase& t = unwrap(self);
  if (t.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(t.sizes()[0]);
}

PyObject* subscript(PyObject* self, PyObject* key) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_method(self, "__getitem__", &key, 1);
  }
  return guarded([&] { return get_item(self, key); });
}
int assign_subscript(PyObject* self, PyObject* key, PyObject* value) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
    return -1;
  }
  if (TAEDA_UNLIKELY(overrides(self) || overrides(value))) {
    PyObject* args[] = {key, value};
    Ref out(override_method(self, "__setitem__", args, 2));
    return out ? 0 : -1;
  }
  return guarded_status([&] { set_item(self, key, value); });
}

PyObject* iterate(const TensorBase& t) {
  TAEDA_CHECK_AS(Type, t.dim() > 0, "iteration over a 0-d tensor");
  Ref list = new_list(static_cast<size_t>(t.sizes()[0]), [&](size_t i) {
    return wrap(select(t, 0, static_cast<int64_t>(i)));
  });
  return PyObject_GetIter(list.get());
}

Py_hash_t hash(PyObject* self) { return _Py_HashPointer(self); }

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

const PyType_Slot kSlots[] = {
    {Py_nb_add, slot(&commutative<"add">)},
    {Py_nb_subtract, slot(&subtract)},
    {Py_nb_multiply, slot(&commutative<"mul">)},
    {Py_nb_true_divide, slot(&true_divide)},
    {Py_nb_floor_divide, slot(&ordered<"floor_divide">)},
    {Py_nb_remainder, slot(&ordered<"remainder">)},
    {Py_nb_power, slot(&power)},
    {Py_nb_matrix_multiply, slot(&ordered<"matmul">)},
    {Py_nb_and, slot(&commutative<"bitwise_and">)},
    {Py_nb_or, slot(&commutative<"bitwise_or">)},
    {Py_nb_xor, slot(&commutative<"bitwise_xor">)},
    {Py_nb_lshift, slot(&ordered<"bitwise_left_shift">)},
    {Py_nb_rshift, slot(&ordered<"bitwise_right_shift">)},
    {Py_nb_inplace_add, slot(&call_method<"add_">)},
    {Py_nb_inplace_subtract, slot(&call_method<"sub_">)},
    {Py_nb_inplace_multiply, slot(&call_method<"mul_">)},
    {Py_nb_inplace_true_divide, slot(&call_method<"div_">)},
    {Py_nb_inplace_floor_divide, slot(&call_method<"floor_divide_">)},
    {Py_nb_inplace_remainder, slot(&call_method<"remainder_">)},
    {Py_nb_inplace_power, slot(&power_inplace)},
    {Py_nb_inplace_and, slot(&call_method<"bitwise_and_">)},
    {Py_nb_inplace_or, slot(&call_method<"bitwise_or_">)},
    {Py_nb_inplace_xor, slot(&call_method<"bitwise_xor_">)},
    {Py_nb_inplace_lshift, slot(&call_method<"bitwise_left_shift_">)},
    {Py_nb_inplace_rshift, slot(&call_method<"bitwise_right_shift_">)},
    {Py_nb_negative, slot(&unary<"neg">)},
    {Py_nb_positive, slot(&unary<"positive">)},
    {Py_nb_absolute, slot(&unary<"abs">)},
    {Py_nb_invert, slot(&unary<"bitwise_not">)},
    {Py_nb_bool, slot(&truth)},
    {Py_nb_int, slot(&object_slot<"__int__", to_long>)},
    {Py_nb_float, slot(&object_slot<"__float__", to_float>)},
    {Py_nb_index, slot(&object_slot<"__index__", to_index>)},
    {Py_mp_length, slot(&length)},
    {Py_mp_subscript, slot(&subscript)},
    {Py_mp_ass_subscript, slot(&assign_subscript)},
    {Py_tp_iter, slot(&object_slot<"__iter__", iterate>)},
    {Py_tp_hash, slot(&hash)},
    {Py_tp_richcompare, slot(&compare)},
    {Py_tp_new, slot(&legacy_new)},
    {0, nullptr},
};
}  // namespace

const PyType_Slot* tensor_number_slots() { return kSlots; }

}  // namespace taeda::python
