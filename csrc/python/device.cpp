#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/values.h>

namespace taeda::python {

PyTypeObject* device_type = nullptr;

namespace {
Device with_index(Device device, int64_t index) {
  TAEDA_CHECK(!device.has_index(),
              "type (string) must not include an index because index was "
              "passed explicitly: ",
              device);
  TAEDA_CHECK(index >= 0, "Device index must not be negative");
  TAEDA_CHECK(index < 128, message("Device index {} is too large", index));
  return Device(device.type, static_cast<int8_t>(index));
}

int64_t to_index(PyObject* o) {
  int64_t index = PyLong_AsLongLong(o);
  if (index == -1 && PyErr_Occurred()) throw PythonError();
  return index;
}

PyObject* make(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "index", nullptr};
  PyObject* type = nullptr;
  PyObject* index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args,
                                   kwargs,
                                   "O|O:device",
                                   const_cast<char**>(names),
                                   &type,
                                   &index)) {
    return nullptr;
  }
  return guarded([&] {
    if (!is_device_like(type)) {
      raise(PyExc_TypeError,
            "device(): argument 'type' (position 1) must be str, not {}",
            type_name_of(type));
    }
    Device device = to_device(type);
    if (index != Py_None) device = with_index(device, to_index(index));
    return new_device(device);
  });
}

PyObject* repr(PyObject* self) {
  Device d = value_of<Device>(self);
  std::string text = str_cat("device(type='", device_type_name(d.type), "'");
  if (d.has_index()) text += str_cat(", index=", int64_t{d.index});
  return new_text(text + ")").release();
}
PyObject* str(PyObject* self) {
  return new_text(value_of<Device>(self).str()).release();
}
Py_hash_t hash(PyObject* self) {
  Device d = value_of<Device>(self);
  return static_cast<Py_hash_t>(d.type) * 1000 + d.index + 7;
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return boolean((value_of<Device>(a) == value_of<Device>(b)) == (op == Py_EQ));
}
PyObject* get_type(PyObject* self, void*) {
  return new_text(device_type_name(value_of<Device>(self).type)).release();
}
PyObject* get_index(PyObject* self, void*) {
  Device d = value_of<Device>(self);
  return d.has_index() ? PyLong_FromLong(d.index) : none();
}
PyGetSetDef getset[] = {
    {"type", get_type, nullptr, "The kind of device, a str.", nullptr},
    {"index",
     get_index,
     nullptr,
     "Which one of its kind, an int; None for the current one.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
}  // namespace

PyObject* new_device(Device device) {
  Ref out = checked(device_type->tp_alloc(device_type, 0));
  reinterpret_cast<PyValue<Device>*>(out.get())->value = device;
  return out.release();
}

Device to_device(PyObject* o) {
  if (is_device(o)) return value_of<Device>(o);
  if (PyUnicode_Check(o)) return Device::parse(utf8(o));
  return with_index(Device(DeviceType::CUDA), to_index(o));
}

void init_device(PyObject* module) {
  device_type = add_type(module,
                         "taeda.device",
                         sizeof(PyValue<Device>),
                         {slot(Py_tp_new, make),
                          slot(Py_tp_repr, repr),
                          slot(Py_tp_str, str),
                          slot(Py_tp_hash, hash),
                          slot(Py_tp_richcompare, compare),
                          {Py_tp_getset, getset},
                          doc_slot("Where a tensor's memory is.")});
}

}  // namespace taeda::python
