#include <taeda/csrc/compiler/capture/kinds.h>
#include <taeda/csrc/compiler/capture/modes.h>
#include <taeda/csrc/compiler/capture/rebuild.h>

namespace taeda::capture {
namespace {

PyTypeObject* type_of(const Recipe& r) {
  return reinterpret_cast<PyTypeObject*>(r.object.get());
}

// Of a class that Python code defined, without its __init__.
template <class F>
Ref empty_container(const Recipe& r, F otherwise) {
  PyTypeObject* type = type_of(r);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return checked(otherwise());
  return empty_of(type);
}

}  // namespace

Ref Builder::make(int recipe) {
  Ref& made = made_[recipe];
  if (made) return made;
  const Recipe& r = rebuild_.recipes[recipe];
  // Known before it is filled: containers may hold themselves.
  Ref begun = begin(r);
  // A function that its own closure holds is made on the way.
  if (made_[recipe]) return made_[recipe];
  made_[recipe] = begun;
  fill(r, begun.get());
  return begun;
}

Ref Builder::begin(const Recipe& r) {
  switch (r.kind) {
    case Recipe::Place:
      return places_[r.index];
    case Recipe::Value:
      return values_[r.index];
    case Recipe::Size:
      return checked(sizes_.number(r.index));
    case Recipe::Truth: {
      Ref number = checked(sizes_.number(r.index));
      return Ref(PyBool_FromLong(PyObject_IsTrue(number.get())));
    }
    case Recipe::Constant:
      return r.object;
    case Recipe::Tuple:
      return make_tuple(r);
    case Recipe::List:
      return empty_container(r, [] { return PyList_New(0); });
    case Recipe::Set:
      return checked(PySet_New(nullptr));
    case Recipe::FrozenSet:
      return checked(PyFrozenSet_New(make_tuple(r).get()));
    case Recipe::Dict:
      return empty_container(
          r, [&] { return PyObject_CallNoArgs(r.object.get()); });
    case Recipe::Instance:
      return new_plain_instance(type_of(r));
    case Recipe::Cell:
      return checked(PyCell_New(nullptr));
    case Recipe::Function:
      return make_function(r);
    case Recipe::Method:
      return checked(
          PyMethod_New(make(r.parts[0]).get(), make(r.parts[1]).get()));
    case Recipe::Slice:
      return checked(PySlice_New(make(r.parts[0]).get(),
                                 make(r.parts[1]).get(),
                                 make(r.parts[2]).get()));
    case Recipe::Mode:
      return make_mode(PyTuple_GET_ITEM(r.object.get(), 0),
                       PyTuple_GET_ITEM(r.object.get(), 1));
    case Recipe::Reduced:
      return make_reduced(r);
  }
  return {};
}

void Builder::fill(const Recipe& r, PyObject* made) {
  const std::vector<int>& parts = r.parts;
  switch (r.kind) {
    case Recipe::List:
      for (int p : parts) {
        python::check_status(PyList_Append(made, make(p).get()));
      }
      break;
    case Recipe::Set:
      for (int p : parts) python::check_status(PySet_Add(made, make(p).get()));
      break;
    case Recipe::Dict:
      for (size_t i = 0; i < parts.size(); i += 2) {
        Ref key = make(parts[i]);
        Ref value = make(parts[i + 1]);
        set_item(made, key.get(), value.get());
      }
      break;
    case Recipe::Reduced:
      if (parts[3] >= 0)
        checked(call_method(made, "extend", make(parts[3]).get()));
      if (parts[4] < 0) break;
      for (PyObject* pair : python::items_of(make(parts[4]).get())) {
        python::check_status(PyObject_SetItem(
            made, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)));
      }
      break;
    case Recipe::Cell:
      if (!parts.empty()) {
        python::check_status(PyCell_Set(made, make(parts[0]).get()));
      }
      break;
    default:
      break;
  }
  set_attributes(r.attributes, made);
}

void Builder::set_attributes(const std::vector<int>& parts, PyObject* made) {
  for (size_t i = 0; i < parts.size(); i += 2) {
    Ref name = make(parts[i]);
    Ref value = make(parts[i + 1]);
    python::check_status(set_own(made, name.get(), value.get()));
  }
}

Ref Builder::make_tuple(const Recipe& r) {
  Ref out = python::new_tuple(
      r.parts.size(), [&](size_t i) { return make(r.parts[i]).release(); });
  return r.kind == Recipe::Tuple ? tuple_of(type_of(r), out.get()) : out;
}

Ref Builder::make_function(const Recipe& r) {
  Ref code = make(r.parts[0]);
  Ref name = make(r.parts[1]);
  Ref out = checked(
      PyFunction_NewWithQualName(code.get(), r.object.get(), name.get()));
  using Setter = int (*)(PyObject*, PyObject*);
  const Setter setters[] = {
      PyFunction_SetDefaults, PyFunction_SetKwDefaults, PyFunction_SetClosure};
  for (int i = 0; i < 3; ++i) {
    int part = r.parts[2 + i];
    if (part >= 0)
      python::check_status(setters[i](out.get(), make(part).get()));
  }
  auto* f = reinterpret_cast<PyFunctionObject*>(out.get());
  PyObject** const fields[] = {&f->func_name,
                               &f->func_doc,
                               &f->func_module,
                               &f->func_annotations,
                               &f->func_dict};
  for (int i = 0; i < 5; ++i) {
    int part = r.parts[5 + i];
    PyObject* value = part < 0 ? nullptr : make(part).release();
    Py_XSETREF(*fields[i], value);
  }
  return out;
}

Ref Builder::make_reduced(const Recipe& r) {
  Ref callable = make(r.parts[0]);
  Ref args = make(r.parts[1]);
  Ref out = checked(PyObject_Call(callable.get(), args.get(), nullptr));
  if (r.parts[2] >= 0) {
    Ref state = make(r.parts[2]);
    checked(call_method(out.get(), "__setstate__", state.get()));
  }
  return out;
}

namespace {

void skip(PyObject* iterator, PyObject* count) {
  Py_ssize_t n = PyLong_AsSsize_t(count);
  while (n-- > 0) {
    Ref item(PyIter_Next(iterator));
    if (item) continue;
    if (PyErr_Occurred()) throw PythonError();
    return;
  }
}

// Its parts are set to their places afterwards.
void advance(PyObject* enumerated, PyObject* to) {
  while (true) {
    Ref at = checked(PyObject_CallMethodNoArgs(
        enumerated, python::interned<"__reduce__">()));
    PyObject* args = PyTuple_GET_ITEM(at.get(), 1);
    int there = PyObject_RichCompareBool(PyTuple_GET_ITEM(args, 1), to, Py_GE);
    python::check_status(there);
    if (there != 0) return;
    Ref item(PyIter_Next(enumerated));
    if (!item) {
      if (PyErr_Occurred()) throw PythonError();
      return;
    }
  }
}

}  // namespace

void Builder::apply(const Effect& e) {
  Ref target = make(e.target);
  Ref value = e.value >= 0 ? make(e.value) : Ref();
  Ref key = e.key_recipe >= 0 ? make(e.key_recipe) : e.key;
  int status = 0;
  switch (e.kind) {
    case Effect::SetAttribute:
    case Effect::DeleteAttribute:
      // What a class's own __setattr__ does has been captured already.
      status = set_own(target.get(), key.get(), value.get());
      break;
    case Effect::SetOnClass:
      status = PyObject_SetAttr(target.get(), key.get(), value.get());
      break;
    case Effect::SetItem:
      set_item(target.get(), key.get(), value.get());
      break;
    case Effect::DeleteItem:
      status = PyODict_Check(target.get())
                   ? PyODict_DelItem(target.get(), key.get())
                   : PyDict_DelItem(target.get(), key.get());
      break;
    case Effect::AssignList:
      status = PyList_SetSlice(
          target.get(), 0, PyList_GET_SIZE(target.get()), value.get());
      break;
    case Effect::AssignSet:
    case Effect::AssignDeque: {
      checked(PyObject_CallMethod(target.get(), "clear", nullptr));
      const char* add = e.kind == Effect::AssignSet ? "update" : "extend";
      checked(call_method(target.get(), add, value.get()));
      break;
    }
    case Effect::SetCell:
      PyCell_Set(target.get(), value.get());
      break;
    case Effect::SetPosition:
      set_position(target.get(), key.get());
      break;
    case Effect::Skip:
      skip(target.get(), key.get());
      break;
    case Effect::Advance:
      advance(target.get(), key.get());
      break;
    case Effect::SetMode:
      remember(target.get(), key.get());
      break;
    case Effect::SetGlobal:
      status = value ? PyDict_SetItem(target.get(), key.get(), value.get())
                     : PyDict_DelItem(target.get(), key.get());
      break;
  }
  python::check_status(status);
}

}  // namespace taeda::capture
