// The switches of aten/settings.h, for backends, nn.attention and
// utils.deterministic.
#include <taeda/aten/settings.h>
#include <taeda/csrc/python/state.h>

namespace taeda::python {

namespace {
using settings::Attention;

Attention to_way(PyObject* number) {
  long way = PyLong_AsLong(number);
  if (way == -1 && PyErr_Occurred()) throw PythonError();
  TAEDA_CHECK_AS(Value,
                 way >= 0 && way < static_cast<long>(settings::kAttentionWays),
                 "attention: no kernel has the number ",
                 way);
  return static_cast<Attention>(way);
}

PyObject* attention_enabled(PyObject*, PyObject* way) {
  return guarded(
      [&] { return boolean(settings::attention_enabled(to_way(way))); });
}
PyObject* enable_attention(PyObject*, PyObject* args) {
  PyObject* way;
  int on;
  if (!PyArg_ParseTuple(args, "Op:enable_attention", &way, &on)) return nullptr;
  return guarded([&] {
    settings::enable_attention(to_way(way), on != 0);
    return none();
  });
}
PyObject* attention_order(PyObject*, PyObject*) {
  auto order = settings::attention_order();
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(order.size()));
  if (list == nullptr) return nullptr;
  for (size_t i = 0; i < order.size(); ++i) {
    PyList_SET_ITEM(list,
                    static_cast<Py_ssize_t>(i),
                    PyLong_FromLong(static_cast<long>(order[i])));
  }
  return list;
}
// Takes a permutation of all ways: a list of their numbers.
PyObject* set_attention_order(PyObject*, PyObject* list) {
  return guarded([&] {
    settings::AttentionOrder order;
    unsigned seen = 0;
    TAEDA_CHECK_AS(
        Value,
        PyList_Check(list) &&
            PyList_GET_SIZE(list) == static_cast<Py_ssize_t>(order.size()),
        "attention: the order is a list of ",
        order.size(),
        " kernels");
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = to_way(PyList_GET_ITEM(list, static_cast<Py_ssize_t>(i)));
      seen |= 1U << static_cast<unsigned>(order[i]);
    }
    TAEDA_CHECK_AS(Value,
                   seen == (1U << order.size()) - 1,
                   "attention: the order names a kernel twice");
    settings::set_attention_order(order);
    return none();
  });
}

template <std::atomic<bool>* flag>
PyObject* get_flag(PyObject*, PyObject*) {
  return boolean(flag->load());
}
template <std::atomic<bool>* flag>
PyObject* set_flag(PyObject*, PyObject* on) {
  int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  flag->store(value != 0);
  Py_RETURN_NONE;
}
PyObject* set_flush_denormal(PyObject*, PyObject* on) {
  int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  return boolean(settings::set_flush_denormal(value != 0));
}

PyMethodDef functions[] = {
    {"_attention_enabled", attention_enabled, METH_O, nullptr},
    {"_enable_attention", enable_attention, METH_VARARGS, nullptr},
    {"_attention_order", attention_order, METH_NOARGS, nullptr},
    {"_set_attention_order", set_attention_order, METH_O, nullptr},
    {"_dnn_enabled", get_flag<&settings::dnn_enabled>, METH_NOARGS, nullptr},
    {"_enable_dnn", set_flag<&settings::dnn_enabled>, METH_O, nullptr},
    {"_fills_uninitialized",
     get_flag<&settings::fill_uninitialized>,
     METH_NOARGS,
     nullptr},
    {"_fill_uninitialized",
     set_flag<&settings::fill_uninitialized>,
     METH_O,
     nullptr},
    {"is_warn_always_enabled",
     get_flag<&settings::warn_always>,
     METH_NOARGS,
     "Whether warnings that appear once appear every time."},
    {"_set_warn_always", set_flag<&settings::warn_always>, METH_O, nullptr},
    {"_set_flush_denormal", set_flush_denormal, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
}  // namespace

void init_settings(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
