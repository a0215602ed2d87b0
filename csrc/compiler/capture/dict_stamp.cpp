#include <taeda/csrc/compiler/capture/dict_stamp.h>

#include <cstdint>
#include <unordered_map>

namespace taeda::capture {

#if PY_VERSION_HEX >= 0x030C0000
namespace {

using Mark = std::shared_ptr<bool>;

// Watched dicts. The GIL guards it; never destroyed, since dicts die late.
std::unordered_map<PyObject*, Mark>& watched() {
  static auto* const table = new std::unordered_map<PyObject*, Mark>();
  return *table;
}

int before_change(PyDict_WatchEvent event,
                  PyObject* dict,
                  PyObject* /*key*/,
                  PyObject* /*value*/);

// The interpreter has eight watchers; without one all dicts count as changed.
int watcher() {
  static const int id = [] {
    int made = PyDict_AddWatcher(before_change);
    if (made < 0) PyErr_Clear();
    return made;
  }();
  return id;
}

int before_change(PyDict_WatchEvent event,
                  PyObject* dict,
                  PyObject* /*key*/,
                  PyObject* /*value*/) {
  auto at = watched().find(dict);
  if (at == watched().end()) return 0;
  *at->second = true;
  watched().erase(at);
  return event == PyDict_EVENT_DEALLOCATED ? 0
                                           : PyDict_Unwatch(watcher(), dict);
}

// 3.13.0 sets attributes in the slots that an instance has for them without a
// word to the watchers of its dict, which shares them. A dict that had to make
// room in its own way no longer does; what it holds, and in which order, stays.
bool leave_slots(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030D0000
  if (reinterpret_cast<PyDictObject*>(dict)->ma_values != nullptr) {
    if (PyDict_SetItemString(dict, "_taeda_stamp", Py_None) < 0) return false;
    PyObject* last = PyObject_CallMethod(dict, "popitem", nullptr);
    Py_XDECREF(last);
    return last != nullptr;
  }
#else
  static_cast<void>(dict);
#endif
  return true;
}

bool watch(PyObject* dict) {
  bool done =
      watcher() >= 0 && leave_slots(dict) && PyDict_Watch(watcher(), dict) == 0;
  if (!done) PyErr_Clear();
  return done;
}

}  // namespace

DictStamp::DictStamp(PyObject* dict) : dict_(dict) {
  if (dict == nullptr) {
    static const auto never = std::make_shared<const bool>(false);
    changed_ = never;
    return;
  }
  auto at = watched().find(dict);
  if (at != watched().end()) {
    changed_ = at->second;
    return;
  }
  auto mark = std::make_shared<bool>(!watch(dict));
  if (!*mark) watched().emplace(dict, mark);
  changed_ = mark;
}

bool DictStamp::holds(PyObject* dict) const {
  return dict == dict_ && !*changed_;
}

#else
namespace {

uint64_t version_of(PyObject* dict) {
  if (dict == nullptr) return 0;
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}

}  // namespace

DictStamp::DictStamp(PyObject* dict) : version_(version_of(dict)) {}

bool DictStamp::holds(PyObject* dict) const {
  return version_of(dict) == version_;
}
#endif

}  // namespace taeda::capture
