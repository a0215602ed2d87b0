// Basic indexing of tensors whose sizes are symbols: as views, dim by dim.
#include <taeda/csrc/python/symbolic_indexing.h>

#include <taeda/aten/iter/symbolic.h>
#include <taeda/csrc/python/arg_parser.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::python {

namespace {
bool is_number(PyObject* item) {
  return PyLong_CheckExact(item) || is_symbol(item);
}
bool is_basic(PyObject* item) {
  return is_number(item) || PySlice_Check(item) || item == Py_None ||
         item == Py_Ellipsis;
}
bool is_bound(PyObject* bound) { return bound == Py_None || is_number(bound); }

TensorBase call(const OperatorEntry& op, std::vector<IValue> arguments) {
  return call_with(op, arguments)[0].get<TensorBase>();
}

const OperatorEntry& entry(const char* name, const char* overload) {
  return *Dispatcher::get().find(name, overload);
}

TensorBase sliced(const TensorBase& t, int64_t dim, PyObject* item) {
  auto* s = reinterpret_cast<PySliceObject*>(item);
  if (s->start == Py_None && s->stop == Py_None && s->step == Py_None) return t;
  auto bound = [](PyObject* o) {
    return o == Py_None ? IValue() : IValue(to_symbol(o));
  };
  SymInt step = s->step == Py_None ? SymInt(1) : to_symbol(s->step);
  TAEDA_CHECK_AS(Value, step > 0, "step must be greater than zero");
  static const OperatorEntry& slice = entry("slice", "Tensor");
  return call(slice, {t, dim, bound(s->start), bound(s->stop), step});
}
}  // namespace

std::optional<TensorBase> symbolic_item(const TensorBase& self, PyObject* key) {
  ArrayRef<PyObject*> items =
      PyTuple_Check(key) ? items_of(key) : ArrayRef<PyObject*>(key);
  int64_t used = 0;
  for (PyObject* item : items) {
    if (!is_basic(item)) return std::nullopt;
    if (PySlice_Check(item)) {
      auto* s = reinterpret_cast<PySliceObject*>(item);
      bool bounds =
          is_bound(s->start) && is_bound(s->stop) && is_bound(s->step);
      if (!bounds) return std::nullopt;
    }
    used += item != Py_None && item != Py_Ellipsis;
  }
  TAEDA_CHECK_AS(Index,
                 used <= self.dim(),
                 "too many indices for tensor of dimension ",
                 self.dim());
  TensorBase out = self;
  int64_t dim = 0, skipped = self.dim() - used;
  for (PyObject* item : items) {
    if (item == Py_Ellipsis) {
      dim += std::exchange(skipped, 0);
    } else if (item == Py_None) {
      out = ops::unsqueeze(out, dim++);
    } else if (PySlice_Check(item)) {
      out = sliced(out, dim++, item);
    } else {
      static const OperatorEntry& select = entry("select", "int");
      out = call(select, {out, dim, to_symbol(item)});
    }
  }
  return out;
}

}  // namespace taeda::python
