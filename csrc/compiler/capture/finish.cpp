// What a captured part leaves: results or frames, and side effects, as recipes.
#include <taeda/csrc/compiler/capture/interpreter.h>
#include <taeda/csrc/compiler/capture/liveness.h>

#include <taeda/c10/core/tensor_impl.h>

namespace taeda::capture {
namespace {

// Calls a method of its argument by name.
Ref method_caller(const char* name) {
  Ref module = checked(PyImport_ImportModule("operator"));
  return checked(PyObject_CallMethod(module.get(), "methodcaller", "s", name));
}

class Recipes {
 public:
  explicit Recipes(Capture& c) : c_(c), rebuild_(c.entry.rebuild) {}

  int of(PyObject* o) {
    auto [at, added] = known_.try_emplace(o, -1);
    if (!added) return at->second;
    auto number = static_cast<int>(rebuild_.recipes.size());
    at->second = number;
    rebuild_.recipes.emplace_back();
    Recipe made = describe(o);
    if (made.kind == Recipe::Value) outputs.push_back(made.index);
    rebuild_.recipes[number] = std::move(made);
    return number;
  }
  int place(int index) {
    rebuild_.recipes.push_back({Recipe::Place, index, {}, {}});
    return static_cast<int>(rebuild_.recipes.size()) - 1;
  }

  std::vector<int> outputs, sizes;

 private:
  static Recipe constant(PyObject* o) {
    return {Recipe::Constant, -1, Ref::borrow(o), {}};
  }
  Recipe items(Recipe::Kind kind, PyObject* o) {
    Recipe out{kind, -1, type(o), {}};
    Ref list = checked(PySequence_List(o));
    for (PyObject* each : python::items_of(list.get())) {
      int part = of(each);
      out.parts.push_back(part);
    }
    return out;
  }
  static Ref type(PyObject* o) {
    return Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(o)));
  }
  Recipe parts(Recipe::Kind kind, std::initializer_list<PyObject*> all) {
    Recipe out{kind, -1, {}, {}, {}};
    for (PyObject* each : all) {
      int part = each == nullptr ? -1 : of(each);
      out.parts.push_back(part);
    }
    return out;
  }
  Recipe describe(PyObject* o);
  Recipe of_container(PyObject* o);
  Recipe of_function(PyObject* o);
  Recipe of_instance(PyObject* o);
  Recipe of_other(PyObject* o);
  Recipe of_generator(PyObject* o);
  Recipe of_call(const Ref& callable,
                 PyObject* argument,
                 PyObject* second = nullptr);
  void add_causes(Recipe& out, PyObject* error);
  std::vector<int> attribute_parts(PyObject* o);
  Recipe with_attributes(Recipe out, PyObject* o) {
    out.attributes = attribute_parts(o);
    return out;
  }
  Recipe of_float(PyObject* o);

  Capture& c_;
  Rebuild& rebuild_;
  std::unordered_map<PyObject*, int> known_;
  std::vector<Ref> kept_;
};

Recipe Recipes::describe(PyObject* o) {
  if (Shadow* s = c_.shadow_of(o)) return {Recipe::Place, s->place, {}, {}, {}};
  auto input = c_.places_of_tensors.find(o);
  if (input != c_.places_of_tensors.end()) {
    return {Recipe::Place, input->second.second, {}, {}, {}};
  }
  auto node = c_.nodes.find(o);
  if (is_sym_float(o) && node == c_.nodes.end()) return of_float(o);
  if (is_symbol(o) && node == c_.nodes.end()) {
    bool truth = type_of(o) != library().sym_int.get();
    int program = c_.program_of(o);
    if (!truth) sizes.push_back(program);
    return {truth ? Recipe::Truth : Recipe::Size, program, {}, {}, {}};
  }
  if (node != c_.nodes.end()) return {Recipe::Value, node->second, {}, {}, {}};
  if (is_tensor(o)) break_graph("a tensor that capture has not seen made");
  if (PyCell_Check(o)) {
    if (!c_.own_cells.contains(o)) {
      return {Recipe::Place, c_.constant(o), {}, {}, {}};
    }
    PyObject* content = PyCell_GET(o);
    if (content == nullptr) return parts(Recipe::Cell, {});
    return parts(Recipe::Cell, {content});
  }
  if (c_.own_functions.contains(o)) return of_function(o);
  if (auto at = c_.made_anew.find(o); at != c_.made_anew.end()) {
    return {Recipe::Place, at->second, {}, {}, {}};
  }
  if (PyMethod_Check(o)) {
    return parts(Recipe::Method,
                 {PyMethod_GET_FUNCTION(o), PyMethod_GET_SELF(o)});
  }
  if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    return parts(Recipe::Slice, {s->start, s->stop, s->step});
  }
  if (PyCFunction_Check(o) && is_bound(o)) {
    // A bound method of something that was made inside.
    Ref name = python::attribute(o, "__name__");
    auto* getattr = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");
    Ref args = checked(PyTuple_Pack(2, PyCFunction_GET_SELF(o), name.get()));
    kept_.push_back(args);
    return parts(Recipe::Reduced,
                 {getattr, args.get(), nullptr, nullptr, nullptr});
  }
  return of_container(o);
}

Recipe Recipes::of_container(PyObject* o) {
  if (PyTuple_Check(o)) {
    return with_attributes(items(Recipe::Tuple, o), o);
  }
  bool derived = is_container_subclass(o);
  if (PyList_CheckExact(o)) return items(Recipe::List, o);
  if (derived && PyList_Check(o)) {
    return with_attributes(items(Recipe::List, o), o);
  }
  if (PySet_Check(o)) return items(Recipe::Set, o);
  if (PyFrozenSet_CheckExact(o)) return items(Recipe::FrozenSet, o);
  if (PyDict_Check(o)) {
    Recipe out{Recipe::Dict, -1, type(o), {}};
    kept_.push_back(keys_of(o));
    for (PyObject* key : python::items_of(kept_.back().get())) {
      int k = of(key);
      int v = of(PyDict_GetItem(o, key));
      out.parts.push_back(k);
      out.parts.push_back(v);
    }
    if (derived) return with_attributes(std::move(out), o);
    if (PyDict_CheckExact(o) ||
        strcmp(Py_TYPE(o)->tp_name, "collections.OrderedDict") == 0) {
      return out;
    }
  }
  return of_instance(o);
}

// Of a taeda.SymFloat: computed again from its parts.
Recipe Recipes::of_float(PyObject* o) {
  Ref compute = python::attribute(o, "_compute");
  Ref args = python::attribute(o, "_parts");
  kept_.push_back(compute);
  kept_.push_back(args);
  return parts(Recipe::Reduced,
               {compute.get(), args.get(), nullptr, nullptr, nullptr});
}

Recipe Recipes::of_function(PyObject* o) {
  auto* f = reinterpret_cast<PyFunctionObject*>(o);
  // The globals are the module's own, whatever is in them.
  Recipe out = parts(Recipe::Function,
                     {f->func_code,
                      f->func_qualname,
                      f->func_defaults,
                      f->func_kwdefaults,
                      f->func_closure,
                      f->func_name,
                      f->func_doc,
                      f->func_module,
                      f->func_annotations,
                      f->func_dict});
  out.object = Ref::borrow(f->func_globals);
  return out;
}

Recipe Recipes::of_instance(PyObject* o) {
  // A member of an enum is the one object of its kind.
  if (!is_plain_instance(o) || is_enum(o)) return of_other(o);
  return with_attributes({Recipe::Instance, -1, type(o), {}, {}}, o);
}

std::vector<int> Recipes::attribute_parts(PyObject* o) {
  std::vector<int> out;
  Ref state = attributes_of(o);
  kept_.push_back(state);
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(state.get(), &at, &key, &value)) {
    int k = of(key);
    int v = of(value);
    out.push_back(k);
    out.push_back(v);
  }
  return out;
}

// Values, and whatever says itself how it is made again.
Recipe Recipes::of_other(PyObject* o) {
  if (is_shared(o)) return constant(o);
  if (is_mode(o)) {
    if (PyDict_GET_SIZE(attributes_of(o).get()) > 0) {
      break_graph("a mode with attributes of its own is alive");
    }
    Ref state = state_of_mode(o);
    return {Recipe::Mode,
            -1,
            checked(PyTuple_Pack(2, type(o).get(), state.get())),
            {}};
  }
  if (PyGen_Check(o)) return of_generator(o);
  if (const char* name = view_of(o)) {
    // A view holds its dict, as a proxy does, and 3.13 has no name for its
    // fields.
    return of_call(method_caller(name), mapping_of(o));
  }
  if (is_alive(o)) {
    PyObject* callback = reinterpret_cast<PyWeakReference*>(o)->wr_callback;
    return of_call(type(o), PyWeakref_GetObject(o), callback);
  }
  if (is_mapping_proxy(o)) return of_call(type(o), mapping_of(o));
  // A deque's asks Python code for the names of its slots.
  int as_it_is = is_deque(o);
  c_.suspended += as_it_is;
  Ref reduced(PyObject_CallMethod(o, "__reduce__", nullptr));
  c_.suspended -= as_it_is;
  if (!reduced || !PyTuple_Check(reduced.get())) {
    PyErr_Clear();
    break_graph(std::string("an object of class ") + Py_TYPE(o)->tp_name +
                " is alive");
  }
  kept_.push_back(reduced);
  // Callable, arguments, state, items of a list, items of a dict.
  PyObject* all[5] = {};
  Py_ssize_t n = std::min<Py_ssize_t>(PyTuple_GET_SIZE(reduced.get()), 5);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* each = PyTuple_GET_ITEM(reduced.get(), i);
    if (i > 1 && each == Py_None) continue;
    if (i > 2) {
      kept_.push_back(checked(PySequence_List(each)));
      each = kept_.back().get();
    }
    all[i] = each;
  }
  if (all[2] != nullptr && !PyObject_HasAttrString(o, "__setstate__")) {
    break_graph(std::string("an object of class ") + Py_TYPE(o)->tp_name +
                " is alive");
  }
  Recipe out = parts(Recipe::Reduced, {all[0], all[1], all[2], all[3], all[4]});
  if (PyExceptionInstance_Check(o)) add_causes(out, o);
  return out;
}

// The errors that an error hangs on, of which __reduce__ says nothing.
void Recipes::add_causes(Recipe& out, PyObject* error) {
  for (const char* name :
       {"__context__", "__cause__", "__suppress_context__"}) {
    kept_.push_back(python::attribute(error, name));
    PyObject* value = kept_.back().get();
    if (value == Py_None || value == Py_False) continue;
    kept_.push_back(python::new_text(name));
    int key = of(kept_.back().get());
    out.attributes.push_back(key);
    out.attributes.push_back(of(value));
  }
}

Recipe Recipes::of_call(const Ref& callable,
                        PyObject* argument,
                        PyObject* second) {
  kept_.push_back(callable);
  kept_.push_back(
      checked(PyTuple_Pack(second == nullptr ? 1 : 2, argument, second)));
  return parts(Recipe::Reduced,
               {callable.get(), kept_.back().get(), nullptr, nullptr, nullptr});
}

// One that has not begun is made by calling its function again.
Recipe Recipes::of_generator(PyObject* o) {
  Ref call = call_of_generator(o);
  if (!call) break_graph("a generator is alive");
  kept_.push_back(call);
  return parts(Recipe::Reduced,
               {PyTuple_GET_ITEM(call.get(), 0),
                PyTuple_GET_ITEM(call.get(), 1),
                nullptr,
                nullptr,
                nullptr});
}

// Differences between stand-ins and what they began as.
class Effects {
 public:
  Effects(Capture& c, Recipes& recipes) : c_(c), recipes_(recipes) {}
  void all() {
    // Iterators of dicts before the dicts change, others after what they run
    // over. Advancing one that runs over another advances that too, which is
    // set to its position afterwards.
    for (auto& s : c_.order) of_skipped(*s);
    for (auto& s : c_.order) of(*s);
    for (size_t i = c_.order.size(); i-- > 0;) of_enumerate(*c_.order[i]);
    for (auto& s : c_.order) of_position(*s);
    for (auto& [outer, cell] : c_.cells) {
      PyObject* now = PyCell_GET(cell.inner.get());
      if (now == cell.before.get()) continue;
      add(Effect::SetCell, recipes_.of(outer), nullptr, now);
    }
    for (auto& key : c_.stored_on_classes) {
      int target = recipes_.place(c_.constant(key.first));
      PyObject* value = c_.globals.at(key).get();
      add(Effect::SetOnClass, target, key.second, value);
    }
    for (auto& key : c_.stored_globals) {
      int target = recipes_.place(c_.constant(key.first));
      add(Effect::SetGlobal, target, key.second, c_.globals.at(key).get());
    }
  }

 private:
  void add(Effect::Kind kind, int target, PyObject* key, PyObject* value) {
    int v = value == nullptr ? -1 : recipes_.of(value);
    int k = kind == Effect::SetItem || kind == Effect::DeleteItem
                ? recipes_.of(key)
                : -1;
    c_.entry.rebuild.effects.push_back({kind, target, Ref::borrow(key), v, k});
  }
  void of(Shadow& s) {
    PyObject* inner = s.inner.get();
    if (s.attributes) {
      Ref now = attributes_of(inner);
      of_attributes(s, now.get(), s.attributes.get());
    }
    if (PyList_Check(inner)) {
      of_items(s, Effect::AssignList, Ref::borrow(inner));
    } else if (PyDict_Check(inner)) {
      of_items_of_dict(s);
    } else if (PySet_Check(inner)) {
      int same = PyObject_RichCompareBool(inner, s.before.get(), Py_EQ);
      if (same == 1) return;
      int target = recipes_.place(s.place);
      // As a list: the stand-in's recipe is the outside object.
      c_.kept.push_back(checked(PySequence_List(inner)));
      add(Effect::AssignSet, target, nullptr, c_.kept.back().get());
    } else if (s.before && PyList_CheckExact(s.before.get())) {
      of_items(s, Effect::AssignDeque, checked(PySequence_List(inner)));
    } else if (is_iterator(inner)) {
      return;
    } else if (is_mode(inner)) {
      Ref now = state_of_mode(inner);
      int same = PyObject_RichCompareBool(now.get(), s.before.get(), Py_EQ);
      if (same == 1) return;
      add(Effect::SetMode, recipes_.place(s.place), now.get(), nullptr);
    } else {
      if (!is_plain_instance(inner) && !PyTuple_Check(inner)) return;
      if (!s.before) s.before = checked(PyDict_New());
      Ref now = attributes_of(inner);
      of_attributes(s, now.get(), s.before.get());
    }
  }
  // Whether the order of a dict is what removing keys and adding others makes.
  static bool keeps_order(PyObject* now, PyObject* before) {
    Ref keys = keys_of(now);
    PyObject* key;
    Py_ssize_t at = 0, i = 0;
    while (PyDict_Next(before, &at, &key, nullptr)) {
      if (PyDict_Contains(now, key) == 0) continue;
      PyObject* there = PyTuple_GET_ITEM(keys.get(), i++);
      int same = PyObject_RichCompareBool(there, key, Py_EQ);
      python::check_status(same);
      if (same == 0) return false;
    }
    return true;
  }
  void of_items_of_dict(Shadow& s) {
    PyObject* now = s.inner.get();
    PyObject* before = s.before.get();
    if (keeps_order(now, before)) {
      of_dict(s, now, before, Effect::SetItem, Effect::DeleteItem);
      return;
    }
    int target = recipes_.place(s.place);
    PyObject* key;
    Py_ssize_t at = 0;
    while (PyDict_Next(before, &at, &key, nullptr)) {
      add(Effect::DeleteItem, target, key, nullptr);
    }
    Ref keys = keys_of(now);
    for (PyObject* each : python::items_of(keys.get())) {
      add(Effect::SetItem, target, each, PyDict_GetItem(now, each));
    }
  }
  void of_enumerate(Shadow& s) {
    if (Py_TYPE(s.inner.get()) == &PyEnum_Type) of_state(s, Effect::Advance);
  }
  void of_skipped(Shadow& s) {
    if (is_dict_iterator(s.outer.get())) of_state(s, Effect::Skip);
  }
  void of_position(Shadow& s) {
    PyObject* inner = s.inner.get();
    bool absolute = is_iterator(inner) && Py_TYPE(inner) != &PyEnum_Type &&
                    !is_dict_iterator(s.outer.get());
    if (absolute) of_state(s, Effect::SetPosition);
  }
  void of_state(Shadow& s, Effect::Kind kind) {
    Ref now = position_of(s.inner.get());
    int same = PyObject_RichCompareBool(now.get(), s.before.get(), Py_EQ);
    python::check_status(same);
    if (same == 0) add(kind, recipes_.place(s.place), now.get(), nullptr);
  }
  void of_items(Shadow& s, Effect::Kind kind, Ref now) {
    auto before = python::items_of(s.before.get());
    auto after = python::items_of(now.get());
    if (before.size() == after.size() &&
        std::equal(before.begin(), before.end(), after.begin())) {
      return;
    }
    // As a list of its own: the stand-in's recipe is the outside object.
    Ref copy = checked(PySequence_List(now.get()));
    c_.kept.push_back(copy);
    add(kind, recipes_.place(s.place), nullptr, copy.get());
  }
  void of_attributes(Shadow& s, PyObject* now, PyObject* before) {
    of_dict(s, now, before, Effect::SetAttribute, Effect::DeleteAttribute);
  }
  void of_dict(Shadow& s,
               PyObject* now,
               PyObject* before,
               Effect::Kind set,
               Effect::Kind drop) {
    PyObject *key, *value;
    int target = -1;
    auto effect = [&](Effect::Kind kind, PyObject* k, PyObject* v) {
      if (target < 0) target = recipes_.place(s.place);
      add(kind, target, k, v);
    };
    Py_ssize_t at = 0;
    while (PyDict_Next(before, &at, &key, &value)) {
      if (PyDict_Contains(now, key) == 0) effect(drop, key, nullptr);
    }
    at = 0;
    while (PyDict_Next(now, &at, &key, &value)) {
      if (PyDict_GetItem(before, key) != value) effect(set, key, value);
    }
  }

  Capture& c_;
  Recipes& recipes_;
};

// Whether nobody can tell that what was made inside is gone. `depth` ends the
// search in what holds itself.
bool ends_unseen(Capture& c, PyObject* o, int depth = 0) {
  if (c.shadow_of(o) != nullptr || depth > 4) return false;
  if (is_tensor(o)) return c.nodes.contains(o);
  if (PyDict_CheckExact(o)) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(o, &at, &key, &value)) {
      if (!ends_unseen(c, value, depth + 1)) return false;
    }
    return true;
  }
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    for (PyObject* each : python::items_of(o)) {
      if (!ends_unseen(c, each, depth + 1)) return false;
    }
    return true;
  }
  return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) ||
         PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || is_symbol(o);
}

// Of a function that goes on only its globals are read: what its closure holds
// is in slots, and lives no longer for this part's sake.
Ref without_closure(const Ref& function) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function.get());
  if (f->func_closure == nullptr) return function;
  return checked(PyFunction_New(f->func_code, f->func_globals));
}

void describe_frame(Capture& c, Recipes& recipes, Frame& f) {
  std::vector<bool> live = live_slots(f);
  FrameShape shape{f.info,
                   without_closure(f.function),
                   f.next,
                   f.current,
                   f.depth,
                   f.keyword_names,
                   {}};
  int count = f.info->object()->co_nlocalsplus + f.depth;
  for (int i = 0; i < count; ++i) {
    bool untouched =
        static_cast<size_t>(i) < f.untouched.size() && f.untouched[i];
    int recipe = -1;
    if (f.slots[i] != nullptr && untouched) {
      recipe = recipes.place(
          c.entry.guards.fetch(Do::Slot, f.number, f.name_of_slot(i), i));
    } else if (f.slots[i] != nullptr) {
      auto slot = static_cast<size_t>(i);
      bool dead = slot < live.size() && !live[slot];
      if (!dead || !ends_unseen(c, f.slots[i])) recipe = recipes.of(f.slots[i]);
    }
    shape.slots.push_back(recipe);
  }
  c.entry.frames.push_back(std::move(shape));
}

}  // namespace

namespace {

// Tuples that hold the same, and numbers, are as good as one, and cannot be
// written to.
void check_distinct(Capture& c) {
  std::vector<int> places;
  for (const auto& [inner, from] : c.places_of_tensors) {
    bool value =
        PyTuple_Check(inner) || is_symbol(inner) || is_sym_float(inner);
    if (!value) places.push_back(from.second);
  }
  for (const auto& s : c.order) {
    if (s->place >= 0 && !PyTuple_Check(s->inner.get())) {
      places.push_back(s->place);
    }
  }
  // Variables that functions share.
  for (const auto& [outer, cell] : c.cells) {
    auto at = c.places_of_constants.find(outer);
    if (at != c.places_of_constants.end()) places.push_back(at->second);
  }
  std::ranges::sort(places);
  if (places.size() > 1) c.entry.guards.check_distinct(std::move(places));
}

}  // namespace

void finish(Capture& c, Ref result) {
  c.record_assertions();
  c.note_modes();
  for (auto [tensor, version] : c.versions) {
    c.entry.mutates |= python::unwrap(tensor).impl()->version() != version;
  }
  Recipes recipes(c);
  if (result) {
    c.entry.result = recipes.of(result.get());
  } else {
    Ref handled(PyErr_GetHandledException());
    if (handled.get() != c.handled.get()) {
      break_graph("an exception is being handled");
    }
    for (auto& f : c.frames) describe_frame(c, recipes, *f);
  }
  if (auto modes = c.changed_function_modes()) {
    c.entry.modes_at_end.emplace();
    for (const Ref& each : *modes) {
      c.entry.modes_at_end->push_back(recipes.of(each.get()));
    }
  }
  Effects(c, recipes).all();
  // Numbers that come from data: programs over them need their values.
  const std::vector<Call>& calls = c.entry.graph.calls();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].defines < 0 || recipes.sizes.empty()) continue;
    recipes.outputs.push_back(static_cast<int>(i));
  }
  c.entry.outputs = recipes.outputs;
  std::set<int> sizes(recipes.sizes.begin(), recipes.sizes.end());
  c.entry.size_outputs.assign(sizes.begin(), sizes.end());
  c.refused = true;
  c.dynamic.finish();
  c.refused = false;
  check_distinct(c);
  c.entry.graph.finish(recipes.outputs);
}

}  // namespace taeda::capture
