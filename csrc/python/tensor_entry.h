// Entry points of hand-written tensor methods and getters: each first gives
// way to __torch_function__, then runs its body with errors translated.
#pragma once

#include <taeda/csrc/python/torch_function.h>

#include <algorithm>

namespace taeda::python {

template <size_t N>
struct FixedName {
  char text[N];
  constexpr FixedName(const char (&s)[N]) { std::copy_n(s, N, text); }
};

// Arguments of one call of a hand-written method.
struct MethodArgs {
  PyObject* self;
  PyObject* const* args;
  Py_ssize_t count;
  PyObject* names;

  const TensorBase& tensor() const { return unwrap(self); }
};

template <FixedName Name, PyObject* (*Body)(const TensorBase&)>
PyObject* getter_entry(PyObject* self, void*) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_getter(self, Name.text);
  }
  return guarded([&] { return Body(unwrap(self)); });
}

template <FixedName Name, void (*Body)(const TensorBase&, PyObject*)>
int setter_entry(PyObject* self, PyObject* value, void*) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_setter(self, Name.text, value);
  }
  return guarded_status([&] { Body(unwrap(self), value); });
}

template <FixedName Name, PyObject* (*Body)(const TensorBase&)>
PyObject* query_entry(PyObject* self, PyObject*) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_method(self, Name.text);
  }
  return guarded([&] { return Body(unwrap(self)); });
}

template <FixedName Name, PyObject* (*Body)(const MethodArgs&)>
PyObject* fast_entry(PyObject* self,
                     PyObject* const* args,
                     Py_ssize_t count,
                     PyObject* names) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_method(self, Name.text, args, count, names);
  }
  return guarded([&] { return Body({self, args, count, names}); });
}

#define TAEDA_QUERY(name, body) \
  {name, &query_entry<name, body>, METH_NOARGS, nullptr}
#define TAEDA_FAST(name, body)                             \
  {name,                                                   \
   (PyCFunction)(void (*)(void)) & fast_entry<name, body>, \
   METH_FASTCALL | METH_KEYWORDS,                          \
   nullptr}
#define TAEDA_GETTER(name, body) \
  {name, &getter_entry<name, body>, nullptr, nullptr, nullptr}
#define TAEDA_PROPERTY(name, get, set) \
  {name, &getter_entry<name, get>, &setter_entry<name, set>, nullptr, nullptr}

// Hand-written signatures are parsed like generated ones: a static table, and a
// bound Args when the call fits.
class BoundArgs : public Args {
 public:
  BoundArgs(const Function& function, const MethodArgs& m) {
    Call call{&function, m.self, m.args, m.count, m.names};
    for (index_ = 0; index_ < function.count; ++index_) {
      if (bind(function.overloads[index_], call)) return;
    }
    raise_no_match(call);
  }
  // Which overload fits.
  int index() const { return index_; }

 private:
  int index_ = 0;
};

}  // namespace taeda::python
