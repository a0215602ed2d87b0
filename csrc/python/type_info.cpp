// finfo and iinfo: the limits of dtypes.
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/state.h>

#include <cfloat>
#include <cmath>

namespace taeda::python {

namespace {
struct PyInfo {
  PyObject_HEAD ScalarType type;
};
PyTypeObject* finfo_type = nullptr;
PyTypeObject* iinfo_type = nullptr;

ScalarType type_of(PyObject* self) {
  return reinterpret_cast<PyInfo*>(self)->type;
}

// Facts of a binary format: bits of precision (with the hidden one), exponent
// of the largest and of the smallest normal number.
struct Format {
  ScalarType type;
  int precision;
  double max;
  int min_exponent;
};
constexpr Format kFormats[] = {
    {kHalf, 11, 65504.0, -14},
    {kBFloat16, 8, 3.3895313892515355e38, -126},
    {kFloat, 24, FLT_MAX, -126},
    {kDouble, 53, DBL_MAX, -1022},
    {ScalarType::Float8_e5m2, 3, 57344.0, -14},
    {ScalarType::Float8_e4m3fn, 4, 448.0, -6},
    {ScalarType::Float8_e5m2fnuz, 3, 57344.0, -15},
    {ScalarType::Float8_e4m3fnuz, 4, 240.0, -7},
    {ScalarType::Float8_e8m0fnu, 1, 1.7014118346046923e38, -127},
};
const Format& format_of(PyObject* self) {
  for (const Format& f : kFormats) {
    if (f.type == type_of(self)) return f;
  }
  return kFormats[2];
}

double eps(const Format& f) { return std::ldexp(1.0, 1 - f.precision); }
double tiny(const Format& f) { return std::ldexp(1.0, f.min_exponent); }
double lowest(const Format& f) {
  return f.type == ScalarType::Float8_e8m0fnu ? tiny(f) : -f.max;
}
// PyTorch's: a decimal resolution of 10 ** -digits10.
double resolution(const Format& f) {
  int digits =
      static_cast<int>(std::floor((f.precision - 1) * 0.30102999566398119521));
  return std::pow(10.0, -digits);
}

template <double (*F)(const Format&)>
PyObject* fact(PyObject* self, void*) {
  return PyFloat_FromDouble(F(format_of(self)));
}
double largest(const Format& f) { return f.max; }

PyObject* bits(PyObject* self, void*) {
  return PyLong_FromSize_t(element_size(type_of(self)) * 8);
}
PyObject* dtype_text(PyObject* self, void*) {
  return new_text(dtype_name(type_of(self))).release();
}
PyObject* int_max(PyObject* self, void*) {
  ScalarType t = type_of(self);
  int n = static_cast<int>(element_size(t) * 8);
  if (!is_signed(t)) return PyLong_FromUnsignedLongLong(~0ULL >> (64 - n));
  return PyLong_FromLongLong(INT64_MAX >> (64 - n));
}
PyObject* int_min(PyObject* self, void*) {
  ScalarType t = type_of(self);
  int n = static_cast<int>(element_size(t) * 8);
  return PyLong_FromLongLong(is_signed(t) ? INT64_MIN >> (64 - n) : 0);
}

PyObject* make_info(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", nullptr};
  PyObject* given = nullptr;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "|O", const_cast<char**>(names), &given)) {
    return nullptr;
  }
  return guarded([&] {
    bool is_float = type == finfo_type;
    if (given == nullptr && !is_float) {
      raise(PyExc_TypeError, "iinfo() missing 1 required argument: 'type'");
    }
    ScalarType t = given == nullptr ? default_dtype() : to_dtype(given);
    if (is_complex(t) && is_float) t = real_type_of(t);
    if (is_float != is_floating(t) || (!is_float && t == kBool)) {
      raise(PyExc_TypeError,
            str_cat(library_name(),
                    is_float ? ".finfo() requires a floating point input "
                               "type. Use "
                             : ".iinfo() requires an integer input type. Use ",
                    library_name(),
                    is_float ? ".iinfo to handle 'torch.finfo'"
                             : ".finfo to handle 'torch.iinfo'"));
    }
    Ref self = checked(type->tp_alloc(type, 0));
    reinterpret_cast<PyInfo*>(self.get())->type = t;
    return self.release();
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return boolean((type_of(a) == type_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return static_cast<int>(type_of(self)) + 11; }

std::string short_number(double v) {
  char text[64];
  std::snprintf(text, sizeof(text), "%g", v);
  return text;
}
PyObject* float_repr(PyObject* self) {
  const Format& f = format_of(self);
  return new_text(str_cat("finfo(resolution=",
                          short_number(resolution(f)),
                          ", min=",
                          short_number(lowest(f)),
                          ", max=",
                          short_number(f.max),
                          ", eps=",
                          short_number(eps(f)),
                          ", smallest_normal=",
                          short_number(tiny(f)),
                          ", tiny=",
                          short_number(tiny(f)),
                          ", dtype=",
                          dtype_name(f.type),
                          ")"))
      .release();
}
PyObject* int_repr(PyObject* self) {
  return guarded([&] {
    Ref low = checked(PyObject_Str(Ref(int_min(self, nullptr)).get()));
    Ref high = checked(PyObject_Str(Ref(int_max(self, nullptr)).get()));
    return new_text(str_cat("iinfo(min=",
                            utf8(low.get()),
                            ", max=",
                            utf8(high.get()),
                            ", dtype=",
                            dtype_name(type_of(self)),
                            ")"))
        .release();
  });
}

PyGetSetDef float_getset[] = {
    {"bits", bits, nullptr, nullptr, nullptr},
    {"eps", fact<eps>, nullptr, nullptr, nullptr},
    {"max", fact<largest>, nullptr, nullptr, nullptr},
    {"min", fact<lowest>, nullptr, nullptr, nullptr},
    {"tiny", fact<tiny>, nullptr, nullptr, nullptr},
    {"smallest_normal", fact<tiny>, nullptr, nullptr, nullptr},
    {"resolution", fact<resolution>, nullptr, nullptr, nullptr},
    {"dtype", dtype_text, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyGetSetDef int_getset[] = {
    {"bits", bits, nullptr, nullptr, nullptr},
    {"max", int_max, nullptr, nullptr, nullptr},
    {"min", int_min, nullptr, nullptr, nullptr},
    {"dtype", dtype_text, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot float_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make_info)},
    {Py_tp_repr, reinterpret_cast<void*>(float_repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_getset, float_getset},
    {Py_tp_doc, const_cast<char*>("The limits of a floating-point dtype.")},
    {0, nullptr},
};
PyType_Slot int_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make_info)},
    {Py_tp_repr, reinterpret_cast<void*>(int_repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_getset, int_getset},
    {Py_tp_doc, const_cast<char*>("The limits of an integer dtype.")},
    {0, nullptr},
};
PyType_Spec float_spec = {
    "taeda.finfo", sizeof(PyInfo), 0, Py_TPFLAGS_DEFAULT, float_slots};
PyType_Spec int_spec = {
    "taeda.iinfo", sizeof(PyInfo), 0, Py_TPFLAGS_DEFAULT, int_slots};
}  // namespace

void init_type_info(PyObject* module) {
  finfo_type = add_type(module, float_spec);
  iinfo_type = add_type(module, int_spec);
}

}  // namespace taeda::python
