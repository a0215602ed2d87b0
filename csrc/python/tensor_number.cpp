// Operators of the Python language on tensors.
#include <taeda/aten/settings.h>
#include <taeda/csrc/python/tensor_functions.h>

#include <utility>

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
PyObject* unary(PyObject* self) {
  return guarded([&] {
    return call_function({&function<Name>(), self, nullptr, 0, nullptr});
  });
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
  Ref inverse(unary<"reciprocal">(b));
  return inverse ? call_method<"mul">(inverse.get(), a) : nullptr;
}
PyObject* invert(PyObject* self) {
  return guarded([&] {
    TAEDA_CHECK_AS(Type,
                   overrides(self) || is_integral(unwrap(self).dtype(),
                                                  /*include_bool=*/true),
                   "~ (operator.invert) is only implemented on integer and "
                   "Boolean-type tensors");
    return unary<"bitwise_not">(self);
  });
}
PyObject* power(PyObject* a, PyObject* b, PyObject*) {
  return ordered<"pow">(a, b);
}
PyObject* power_inplace(PyObject* a, PyObject* b, PyObject*) {
  return call_method<"pow_">(a, b);
}

// NumPy leaves `tensor == array` to the tensor, which reads the array as one.
PyObject* equal(PyObject* a, PyObject* b) {
  if (TAEDA_LIKELY(is_tensor(b) || !is_numpy_array(b))) {
    return call_method<"eq">(a, b);
  }
  return guarded([&] {
    Ref other(wrap(tensor_from_numpy(b, false)));
    return call_method<"eq">(a, other.get());
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  static constexpr binaryfunc kByOp[] = {call_method<"lt">,
                                         call_method<"le">,
                                         equal,
                                         call_method<"ne">,
                                         call_method<"gt">,
                                         call_method<"ge">};
  return kByOp[op](a, b);
}

// Numbers --------------------------------------------------------------------

// A slot that gives an object, of the tensor or of whoever overrides it.
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
    Scalar s = item_of(t, Reading::Truth);
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
  TAEDA_CHECK(!t.is_complex(),
              "value cannot be converted to type int64_t without overflow");
  return PyNumber_Long(checked(item_object(t)).get());
}
PyObject* to_float(const TensorBase& t) {
  check_one_element(t);
  // Once per process; read and written under the interpreter's lock.
  static bool warned = false;
  if (t.requires_grad() &&
      (!std::exchange(warned, true) || settings::warn_always)) {
    check_status(PyErr_WarnEx(
        PyExc_UserWarning,
        "Converting a tensor with requires_grad=True to a scalar may lead to "
        "unexpected behavior.\nConsider using tensor.detach() first.",
        1));
  }
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
  return static_cast<Py_ssize_t>(t.size(0));
}

PyObject* subscript(PyObject* self, PyObject* key) {
  auto handed = [&] { return override_method(self, "__getitem__", &key, 1); };
  if (TAEDA_UNLIKELY(overrides(self))) return handed();
  return unless_overridden([&] { return get_item(self, key); }, handed);
}
int assign_subscript(PyObject* self, PyObject* key, PyObject* value) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
    return -1;
  }
  PyObject* args[] = {key, value};
  auto handed = [&] { return override_method(self, "__setitem__", args, 2); };
  auto set = [&] { return set_item(self, key, value), Py_NewRef(Py_None); };
  bool takes_over = overrides(self) || overrides(value);
  Ref out(takes_over ? handed() : unless_overridden(set, handed));
  return out ? 0 : -1;
}

PyObject* iterate(const TensorBase& t) {
  TAEDA_CHECK_AS(Type, t.dim() > 0, "iteration over a 0-d tensor");
  Ref list = new_list(static_cast<size_t>(t.size(0)), [&](size_t i) {
    return wrap(select(t, 0, static_cast<int64_t>(i)));
  });
  return PyObject_GetIter(list.get());
}
}  // namespace

std::vector<PyType_Slot> tensor_number_slots() {
  return {
      slot(Py_nb_add, commutative<"add">),
      slot(Py_nb_subtract, subtract),
      slot(Py_nb_multiply, commutative<"mul">),
      slot(Py_nb_true_divide, true_divide),
      slot(Py_nb_floor_divide, ordered<"floor_divide">),
      slot(Py_nb_remainder, ordered<"remainder">),
      slot(Py_nb_power, power),
      slot(Py_nb_matrix_multiply, ordered<"matmul">),
      slot(Py_nb_and, commutative<"bitwise_and">),
      slot(Py_nb_or, commutative<"bitwise_or">),
      slot(Py_nb_xor, commutative<"bitwise_xor">),
      slot(Py_nb_lshift, ordered<"bitwise_left_shift">),
      slot(Py_nb_rshift, ordered<"bitwise_right_shift">),
      slot(Py_nb_inplace_add, call_method<"add_">),
      slot(Py_nb_inplace_subtract, call_method<"sub_">),
      slot(Py_nb_inplace_multiply, call_method<"mul_">),
      slot(Py_nb_inplace_true_divide, call_method<"div_">),
      slot(Py_nb_inplace_floor_divide, call_method<"floor_divide_">),
      slot(Py_nb_inplace_remainder, call_method<"remainder_">),
      slot(Py_nb_inplace_power, power_inplace),
      slot(Py_nb_inplace_and, call_method<"bitwise_and_">),
      slot(Py_nb_inplace_or, call_method<"bitwise_or_">),
      slot(Py_nb_inplace_xor, call_method<"bitwise_xor_">),
      slot(Py_nb_inplace_lshift, call_method<"bitwise_left_shift_">),
      slot(Py_nb_inplace_rshift, call_method<"bitwise_right_shift_">),
      slot(Py_nb_negative, unary<"neg">),
      slot(Py_nb_positive, unary<"positive">),
      slot(Py_nb_absolute, unary<"abs">),
      slot(Py_nb_invert, invert),
      slot(Py_nb_bool, truth),
      slot(Py_nb_int, object_slot<"__int__", to_long>),
      slot(Py_nb_float, object_slot<"__float__", to_float>),
      slot(Py_nb_index, object_slot<"__index__", to_index>),
      slot(Py_mp_length, length),
      slot(Py_mp_subscript, subscript),
      slot(Py_mp_ass_subscript, assign_subscript),
      slot(Py_tp_iter, object_slot<"__iter__", iterate>),
      slot(Py_tp_hash, PyBaseObject_Type.tp_hash),
      slot(Py_tp_richcompare, compare),
      slot(Py_tp_new, legacy_new),
  };
}

}  // namespace taeda::python
