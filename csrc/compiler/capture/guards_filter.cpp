// Guards as a program's filter sees them, and what is left of them.
#include <taeda/csrc/compiler/capture/capture.h>
#include <taeda/csrc/compiler/capture/kinds.h>

namespace taeda::capture {

// Note [Filtered guards]
// A filter gets one entry for each check and says which stay. What it drops is
// gone, and so are fetches that nothing reads any more: what a program promises
// not to change is not looked at. Of a tensor that the graph takes, the class
// stays (and its rank, where symbols are read off its sizes), and so does the
// type of what is changed behind the graph, or from which C reads an item: a
// promise that is broken leads to another capture or to an error, but not to
// memory that is something else.

namespace {

const char* kind_of(const Step& s) {
  PyObject* o = s.object.get();
  switch (s.what) {
    case Do::CheckType:
      return "TYPE_MATCH";
    case Do::CheckIs:
      if (is_singleton(o)) return "CONSTANT_MATCH";
      return PyFunction_Check(o) || PyCode_Check(o) ? "CLOSURE_MATCH"
                                                    : "ID_MATCH";
    case Do::CheckEqual:
      return "CONSTANT_MATCH";
    case Do::CheckLength:
      return "SEQUENCE_LENGTH";
    case Do::CheckKeys:
    case Do::CheckOwnKeys:
      return "DICT_KEYS_MATCH";
    case Do::CheckSet:
      return "EQUALS_MATCH";
    case Do::CheckAbsent:
    case Do::CheckUnset:
      return "NOT_PRESENT_IN_GENERIC_DICT";
    case Do::CheckNoItem:
      return "DICT_NOT_CONTAINS";
    case Do::CheckCode:
      return "CLOSURE_MATCH";
    case Do::CheckSame:
      return "DUPLICATE_INPUT";
    case Do::CheckTensor:
      return "TENSOR_MATCH";
    case Do::CheckSizes:
      return "SHAPE_ENV";
    default:
      return "EQUALS_MATCH";
  }
}

// What reads its place by C's macros of one type.
bool counts_on_type(Do what) {
  return what == Do::DictItem || what == Do::Item || what == Do::Content ||
         what == Do::Mapping || what == Do::Referent ||
         what == Do::CheckLength || what == Do::CheckKeys ||
         what == Do::CheckNoItem || what == Do::CheckEmpty ||
         what == Do::CheckMode;
}

// That objects are different ones is no choice: where a place stays, so does
// this. Nor is what classes do.
bool is_check(const Step& s) {
  return s.what >= Do::CheckType && s.what != Do::CheckDistinct &&
         s.what != Do::CheckClass;
}

}  // namespace

// The root of a place that is no variable of the function.
bool Guards::is_global(int place) const {
  const Step* s = &step_of(place);
  while (s->parent >= 0 && s->what != Do::Slot) s = &step_of(s->parent);
  PyObject* root = s->what == Do::Constant ? s->object.get() : nullptr;
  return root != nullptr &&
         (PyDict_Check(root) || PyModule_Check(root) || PyType_Check(root));
}

// Borrowed: the module that a place is, or is an attribute of; null for none.
PyObject* Guards::module_of(int place, PyTypeObject* modules) const {
  while (true) {
    PyObject* value = values_[place];
    if (value != nullptr && PyObject_TypeCheck(value, modules)) return value;
    const Step& s = step_of(place);
    if (s.what == Do::Slot || s.parent < 0) return nullptr;
    place = s.parent;
  }
}

Ref Guards::entries(PyObject* module_class) const {
  auto* modules = reinterpret_cast<PyTypeObject*>(module_class);
  std::vector<const Step*> checks;
  for (const Step& s : steps_) {
    if (is_check(s)) checks.push_back(&s);
  }
  return python::new_list(checks.size(), [&](size_t i) {
    const Step& s = *checks[i];
    bool sizes = s.what == Do::CheckSizes;
    PyObject* value = sizes ? nullptr : values_[s.place];
    PyObject* module = sizes ? nullptr : module_of(s.place, modules);
    return Py_BuildValue(
        "(sOOsOOO)",
        sizes ? "" : name(s.place).c_str(),
        value != nullptr ? Py_True : Py_False,
        value != nullptr ? value : Py_None,
        kind_of(s),
        is_global(s.place) ? Py_True : Py_False,
        module != nullptr ? Py_True : Py_False,
        module != nullptr && of_library(Py_TYPE(module)) ? Py_True : Py_False);
  });
}

namespace {

// What is left of a check that was dropped, of a place that is read.
bool loosen(Step& s, SizeGuards* sizes, const std::vector<bool>& read) {
  auto place = static_cast<size_t>(s.place);
  if (s.what == Do::CheckTensor) {
    s.facts->loose = true;
    return read[place];
  }
  if (s.what == Do::CheckType) return read[place];
  if (s.what != Do::CheckSizes) return false;
  // The symbols' values are read off all the same.
  sizes->conditions.clear();
  sizes->strides.clear();
  sizes->ranges.assign(sizes->ranges.size(), {});
  return true;
}

}  // namespace

// Backwards, since what reads a place stands behind what makes it.
std::vector<bool> Guards::steps_left(const std::vector<bool>& kept,
                                     std::vector<bool> read) {
  std::vector<bool> typed = read;
  if (sizes_) {
    for (const SizeSource& s : sizes_->sources) {
      read[s.place] = typed[s.place] = true;
    }
    for (const SizeGuards::Stride& s : sizes_->strides) {
      read[s.place] = typed[s.place] = true;
    }
  }
  std::vector<bool> left(steps_.size());
  size_t check = kept.size();
  for (size_t i = steps_.size(); i-- > 0;) {
    Step& s = steps_[i];
    if (s.what == Do::CheckDistinct) continue;
    if (s.what == Do::CheckClass) {
      left[i] = read[s.place] = true;
      continue;
    }
    if (!is_check(s)) {
      left[i] = read[s.place];
      bool has_parent = s.what != Do::Slot && s.parent >= 0;
      if (!left[i] || !has_parent) continue;
      read[s.parent] = true;
      if (counts_on_type(s.what)) typed[s.parent] = true;
      continue;
    }
    left[i] = kept[--check] || loosen(s, sizes_.get(), typed);
    if (!left[i]) continue;
    read[s.place] = true;
    if (counts_on_type(s.what)) typed[s.place] = true;
    if (s.what == Do::CheckSame) read[s.index] = true;
  }
  return left;
}

void Guards::keep(const std::vector<bool>& kept,
                  const std::vector<bool>& read) {
  std::vector<bool> left = steps_left(kept, read);
  if (distinct_) {
    std::vector<bool> there(places_);
    for (size_t i = 0; i < places_; ++i) there[i] = left[made_by_[i]];
    distinct_->keep(there);
    for (size_t i = 0; i < steps_.size() && !distinct_->places().empty(); ++i) {
      if (steps_[i].what != Do::CheckDistinct) continue;
      left[i] = true;
      steps_[i].place = distinct_->places()[0];
    }
  }
  // Places keep their names, which errors and backends tell.
  for (size_t i = 0; i < steps_.size(); ++i) {
    int place = steps_[i].place;
    if (steps_[i].what >= Do::CheckType || left[i]) continue;
    label(place, name(place));
    values_[place] = nullptr;
  }
  std::vector<Step> steps;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!left[i]) continue;
    if (steps_[i].what < Do::CheckType)
      made_by_[steps_[i].place] = steps.size();
    steps.push_back(std::move(steps_[i]));
  }
  steps_ = std::move(steps);
  again_.clear();
  failed_ = 0;
}

}  // namespace taeda::capture
