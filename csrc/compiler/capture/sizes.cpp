#include <taeda/csrc/compiler/capture/sizes.h>

#include <taeda/c10/core/tensor_impl.h>

namespace taeda::capture {

namespace {

bool read(const SizeSource& s, PyObject* o, int64_t& out) {
  if (s.kind == SizeSource::Number) {
    int overflow = 0;
    out = PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow == 0;
  }
  const TensorImpl& t = *python::unwrap(o).impl();
  out = s.kind == SizeSource::Size ? t.sizes()[s.dim] : t.strides()[s.dim];
  return true;
}

}  // namespace

int SizeGuards::first_failure(const std::vector<PyObject*>& places,
                              std::vector<int64_t>& values) const {
  int at = 0;
  values.resize(ranges.size());
  for (const SizeSource& s : sources) {
    int64_t value;
    if (!read(s, places[s.place], value)) return at;
    if (s.first) {
      if (!ranges[s.symbol].contains(value)) return at;
      values[s.symbol] = value;
    } else if (values[s.symbol] != value) {
      return at;
    }
    ++at;
  }
  for (const Stride& s : strides) {
    const TensorImpl& t = *python::unwrap(places[s.place]).impl();
    if (s.program.run(values.data()) != t.strides()[s.dim]) return at;
    ++at;
  }
  for (const Condition& c : conditions) {
    if (c.program.run(values.data()).value_or(0) == 0) return at;
    ++at;
  }
  return -1;
}

bool SizeGuards::hold(const std::vector<PyObject*>& places,
                      std::vector<int64_t>& values) const {
  return first_failure(places, values) < 0;
}

PyObject* SizeValues::number(int program) const {
  auto at = static_cast<size_t>(program);
  if (at < given.size() && given[at]) return Py_NewRef(given[at].get());
  std::optional<int64_t> value = (*programs)[program].run(symbols.data());
  if (!value) {
    PyErr_SetString(PyExc_ZeroDivisionError,
                    "integer division or modulo by zero");
    throw python::PythonError();
  }
  return PyLong_FromLongLong(*value);
}

void SizeValues::define(int symbol, PyObject* number) {
  if (symbols.size() <= static_cast<size_t>(symbol)) symbols.resize(symbol + 1);
  symbols[symbol] = PyLong_AsLongLong(number);
  if (symbols[symbol] == -1 && PyErr_Occurred()) throw python::PythonError();
}

}  // namespace taeda::capture
