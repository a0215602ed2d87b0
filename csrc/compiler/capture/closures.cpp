// Outside functions of which a call has another one each time.
//
// Note [Functions made anew]
// A lambda among the arguments is another object in each call. What such a
// function does follows from its code, its globals and defaults, and from what
// its closure holds, so these are guarded and the object is not. It is
// itself inside, and what leaves the captured code is found by its place. Where
// code can tell functions apart (`is`, a key, an argument of C code), the
// function is pinned: from then on its identity is guarded too. Functions that
// hang on classes, modules and instances live as long as these, and their
// identity is the cheaper guard. Compiled functions share what was captured
// in the same way, so cells of their closures are slots of the first frame.
#include <taeda/csrc/compiler/capture/policy.h>

namespace taeda::capture {
namespace {

PyFunctionObject* function_of(PyObject* o) {
  return reinterpret_cast<PyFunctionObject*>(o);
}

// By its identity: a mark, an attribute, defaults by name.
bool is_special(PyObject* o) {
  const Library& lib = library();
  PyFunctionObject* f = function_of(o);
  bool bare = f->func_dict == nullptr || PyDict_GET_SIZE(f->func_dict) == 0;
  return !bare || f->func_kwdefaults != nullptr ||
         f->func_code == lib.disabled_code.get() ||
         substitute_of(o) != nullptr ||
         PySet_Contains(lib.allowed.get(), o) == 1 ||
         PySet_Contains(lib.unsafe, o) == 1;
}

}  // namespace

bool Capture::is_made_anew(PyObject* function, int place) const {
  for (int at = place;;) {
    const Step& s = entry.guards.step_of(at);
    if (s.what == Do::Slot) break;
    bool of_partial =
        s.what == Do::Attribute &&
        PyUnicode_CompareWithASCIIString(s.object.get(), "func") == 0;
    bool passed_on = s.what == Do::Item || s.what == Do::DictItem ||
                     s.what == Do::Content || of_partial ||
                     (s.what == Do::Attribute && at != place);
    if (!passed_on || s.parent < 0) return false;
    at = s.parent;
  }
  return !is_special(function);
}

Ref Capture::function_made_anew(PyObject* o, int place) {
  Guards& guards = entry.guards;
  PyFunctionObject* f = function_of(o);
  kept.push_back(Ref::borrow(o));
  auto part = [&](const char* name) {
    return guards.fetch(Do::Attribute, place, python::new_text(name).get());
  };
  guards.check(Do::CheckType, place, type_of(o));
  guards.check(Do::CheckIs, part("__code__"), f->func_code);
  guards.check(Do::CheckIs, part("__globals__"), f->func_globals);
  guards.check(Do::CheckIs, part("__kwdefaults__"), Py_None);
  int defaults = part("__defaults__");
  if (f->func_defaults == nullptr) {
    guards.check(Do::CheckIs, defaults, Py_None);
  } else {
    guards.check(Do::CheckType, defaults, type_of(f->func_defaults));
    guards.check(Do::CheckLength, defaults, nullptr, Py_SIZE(f->func_defaults));
    places_of_defaults[o] = defaults;
  }
  int cells_at = f->func_closure == nullptr ? -1 : part("__closure__");
  Py_ssize_t count =
      f->func_closure == nullptr ? 0 : PyTuple_GET_SIZE(f->func_closure);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* cell = PyTuple_GET_ITEM(f->func_closure, i);
    int at = guards.fetch(Do::Item, cells_at, nullptr, i);
    auto [known_at, added] = places_of_constants.try_emplace(cell, at);
    if (!added) guards.check(Do::CheckSame, at, nullptr, known_at->second);
  }
  known[o] = {Ref::borrow(o), place};
  made_anew[o] = place;
  return Ref::borrow(o);
}

void Capture::pin(PyObject* function) {
  auto at = made_anew.find(function);
  if (at == made_anew.end()) return;
  entry.guards.check(Do::CheckIs, at->second, function);
  made_anew.erase(at);
}

// A function that is known by its identity may get other code or defaults.
void Capture::note_code(PyObject* function) {
  auto* f = function_of(function);
  bool known_whole = made_anew.contains(function) ||
                     own_functions.contains(function) ||
                     !noted_code.insert(function).second;
  if (known_whole) return;
  PyObject* name = PyDict_GetItemString(f->func_globals, "__name__");
  const char* text =
      name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (text != nullptr && is_own_module(text)) return;
  auto or_none = [](PyObject* o) { return o == nullptr ? Py_None : o; };
  Ref parts = checked(PyTuple_Pack(
      3, f->func_code, or_none(f->func_defaults), or_none(f->func_kwdefaults)));
  entry.guards.check(Do::CheckCode, constant(function), parts.get());
  if (f->func_kwdefaults == nullptr) return;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(f->func_kwdefaults, &at, &key, &value)) {
    int place =
        entry.guards.fetch(Do::DictItem, constant(f->func_kwdefaults), key);
    entry.guards.check(Do::CheckIs, place, value);
  }
}

// A default of a function that was defined outside is an outside object.
void Capture::adopt_default(Frame& f, int slot) {
  PyObject* function = f.function.get();
  if (own_functions.contains(function)) return;
  Ref outer(f.slots[slot]);
  f.slots[slot] = nullptr;
  int count = f.info->object()->co_argcount;
  PyObject* all = function_of(function)->func_defaults;
  auto i = slot - (all == nullptr ? 0 : count - PyTuple_GET_SIZE(all));
  auto defaults = places_of_defaults.find(function);
  int place = -1;
  if (defaults != places_of_defaults.end() && slot < count) {
    place = entry.guards.fetch(Do::Item, defaults->second, nullptr, i);
  } else {
    place = constant(outer.get());
    auto known_at = places_of_functions.find(function);
    if (is_tensor(outer.get()) && known_at != places_of_functions.end()) {
      std::string owner = entry.guards.name(known_at->second);
      PyObject* slot_name = f.name_of_slot(slot);
      entry.guards.label(
          place,
          slot < count ? owner + ".__defaults__[" + std::to_string(i) + "]"
                       : owner + ".__kwdefaults__['" +
                             PyUnicode_AsUTF8(slot_name) + "']");
    }
  }
  f.slots[slot] = realize(outer.get(), place).release();
}

}  // namespace taeda::capture
