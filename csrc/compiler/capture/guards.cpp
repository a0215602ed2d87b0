#include <taeda/csrc/compiler/capture/guards.h>
#include <taeda/csrc/compiler/capture/modes.h>

#include <taeda/c10/core/tensor_impl.h>
#include <taeda/csrc/autograd/variable.h>

#include <bit>

namespace taeda::capture {
namespace {

PyObject* instance_dict(PyObject* o) {
  PyObject** dict = _PyObject_GetDictPtr(o);
  return dict == nullptr ? nullptr : *dict;
}

// Exact types with values that compare without running Python code.
bool equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    // By bits: -0.0 is another value, and nan is one.
    double x = PyFloat_AS_DOUBLE(a);
    double y = PyFloat_AS_DOUBLE(b);
    return std::bit_cast<int64_t>(x) == std::bit_cast<int64_t>(y);
  }
  int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same < 0) PyErr_Clear();
  return same == 1;
}

bool has_keys(PyObject* dict, PyObject* keys) {
  if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  PyObject* key;
  Py_ssize_t at = 0;
  Py_ssize_t i = 0;
  while (PyDict_Next(dict, &at, &key, nullptr)) {
    if (!equal(key, PyTuple_GET_ITEM(keys, i++))) return false;
  }
  return true;
}

const char* word(Do what) {
  static const char* const words[] = {
      "slot",      "constant",  "item",
      "attribute", "attribute", "item",
      "content",   "elements",  "result",
      "position",  "type",      "identity",
      "value",     "length",    "keys",
      "elements",  "absence",   "absence",
      "absence",   "emptiness", "identity of two names",
      "tensor",    "mode"};
  return words[static_cast<int>(what)];
}

std::string text_of(PyObject* o) {
  Ref text(PyObject_Repr(o));
  const char* s = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (s == nullptr) PyErr_Clear();
  return s == nullptr ? "?" : s;
}

}  // namespace

namespace {

bool is_leaf(PyObject* tensor) {
  return autograd::is_leaf(python::unwrap(tensor));
}

}  // namespace

TensorFacts::TensorFacts(PyObject* tensor) : type(Py_TYPE(tensor)) {
  const TensorImpl& t = *python::unwrap(tensor).impl();
  sizes = DimVector(t.sizes().begin(), t.sizes().end());
  strides = DimVector(t.strides().begin(), t.strides().end());
  dtype = t.dtype();
  device = t.device().type;
  requires_grad = t.requires_grad();
  symbolic = t.is_symbolic();
  leaf = is_leaf(tensor);
  inference = t.is_inference;
}

bool TensorFacts::hold(PyObject* tensor) const {
  if (Py_TYPE(tensor) != type) return false;
  const TensorImpl& t = *python::unwrap(tensor).impl();
  return t.dtype() == dtype && t.requires_grad() == requires_grad &&
         t.sizes() == IntArrayRef(sizes) &&
         t.strides() == IntArrayRef(strides) && t.device().type == device &&
         t.is_inference == inference &&
         (!requires_grad || is_leaf(tensor) == leaf);
}

int Guards::fetch(Do what, int parent, PyObject* object, int64_t index) {
  auto place = static_cast<int>(places_++);
  made_by_.push_back(steps_.size());
  steps_.push_back({what, place, parent, index, Ref::borrow(object)});
  values_.resize(places_);
  return place;
}

void Guards::check(Do what, int place, PyObject* object, int64_t index) {
  steps_.push_back({what, place, -1, index, Ref::borrow(object)});
}

void Guards::check_tensor(int place, PyObject* tensor) {
  steps_.push_back({Do::CheckTensor, place});
  steps_.back().facts = std::make_unique<TensorFacts>(tensor);
}

bool Guards::run(const Step& s, const std::vector<FrameState>& frames) const {
  PyObject*& own = values_[s.place];
  PyObject* parent = s.parent >= 0 ? values_[s.parent] : nullptr;
  PyObject* key = s.object.get();
  switch (s.what) {
    case Do::Slot:
      own = frames[s.parent].slots[s.index];
      return own != nullptr;
    case Do::Constant:
      own = key;
      return true;
    case Do::DictItem:
      own = PyDict_GetItemWithError(parent, key);
      return own != nullptr;
    case Do::InstanceItem:
      parent = instance_dict(parent);
      own = parent == nullptr ? nullptr : PyDict_GetItemWithError(parent, key);
      return own != nullptr;
    case Do::Attribute:
      kept_.emplace_back(PyObject_GetAttr(parent, key));
      own = kept_.back().get();
      return own != nullptr;
    case Do::Item:
      if (Py_SIZE(parent) <= s.index) return false;
      own = PySequence_Fast_ITEMS(parent)[s.index];
      return true;
    case Do::Content:
      own = PyCell_GET(parent);
      return own != nullptr;
    case Do::Elements:
      kept_.emplace_back(PySequence_List(parent));
      own = kept_.back().get();
      return own != nullptr;
    case Do::Called:
      kept_.emplace_back(PyObject_Call(parent, key, nullptr));
      own = kept_.back().get();
      return own != nullptr;
    case Do::Reduced:
      kept_.emplace_back(
          PyObject_CallMethodNoArgs(parent, python::interned<"__reduce__">()));
      own = kept_.back().get();
      return own != nullptr;
    case Do::CheckType:
      return Py_TYPE(own) == reinterpret_cast<PyTypeObject*>(key);
    case Do::CheckIs:
      return own == key;
    case Do::CheckEqual:
      return equal(own, key);
    case Do::CheckLength:
      return Py_SIZE(own) == s.index;
    case Do::CheckKeys:
      return has_keys(own, key);
    case Do::CheckSet:
      return equal(own, key);
    case Do::CheckAbsent:
      parent = instance_dict(own);
      return parent == nullptr || PyDict_Contains(parent, key) == 0;
    case Do::CheckUnset:
      if (Ref(PyObject_GenericGetAttr(own, key))) return false;
      PyErr_Clear();
      return true;
    case Do::CheckNoItem:
      return PyDict_Contains(own, key) == 0;
    case Do::CheckEmpty:
      return PyCell_GET(own) == nullptr;
    case Do::CheckSame:
      return own == values_[s.index];
    case Do::CheckTensor:
      return s.facts->hold(own);
    case Do::CheckMode:
      return equal(state_of_mode(own).get(), key);
  }
  return false;
}

namespace {

PyObject* dict_at(PyObject* o, bool of_instance) {
  return of_instance ? instance_dict(o) : o;
}

bool reads_dict(Do what) {
  return what == Do::DictItem || what == Do::InstanceItem ||
         what == Do::CheckAbsent || what == Do::CheckNoItem ||
         what == Do::CheckKeys;
}

bool compares(Do what) { return what == Do::CheckIs || what == Do::CheckEqual; }

}  // namespace

void Guards::note_versions() const {
  std::vector<bool> noted(places_ * 2);
  std::vector<bool> fixed(places_);  // the value is what it was
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    bool fetches = s.what < Do::CheckType;
    if (s.what == Do::Constant) {
      fixed[s.place] = true;
      continue;
    }
    if (compares(s.what) && fixed[s.place]) continue;
    if (!reads_dict(s.what)) {
      again_.push_back({static_cast<int>(i)});
      continue;
    }
    int holder = fetches ? s.parent : s.place;
    bool of_instance = s.what == Do::InstanceItem || s.what == Do::CheckAbsent;
    if (fetches) fixed[s.place] = true;
    if (noted[2 * holder + of_instance]) continue;
    noted[2 * holder + of_instance] = true;
    PyObject* dict = dict_at(values_[holder], of_instance);
    uint64_t version =
        dict ? reinterpret_cast<PyDictObject*>(dict)->ma_version_tag : 0;
    again_.push_back({-1, holder, of_instance, version});
  }
}

// The same question, when only the noted dicts have to be the same.
bool Guards::hold_again(const std::vector<FrameState>& frames) const {
  for (const Again& a : again_) {
    if (a.step >= 0) {
      if (!run(steps_[a.step], frames)) return false;
      continue;
    }
    PyObject* dict = dict_at(values_[a.place], a.of_instance);
    uint64_t version =
        dict ? reinterpret_cast<PyDictObject*>(dict)->ma_version_tag : 0;
    if (version != a.version) return false;
  }
  return true;
}

bool Guards::hold(const std::vector<FrameState>& frames) const {
  kept_.clear();
  if (!again_.empty()) {
    if (hold_again(frames)) return true;
    PyErr_Clear();
    again_.clear();
    kept_.clear();
  }
  for (const Step& s : steps_) {
    if (run(s, frames)) continue;
    PyErr_Clear();
    failed_ = static_cast<size_t>(&s - steps_.data());
    return false;
  }
  note_versions();
  return true;
}

std::string Guards::name(int place) const {
  const Step& s = step_of(place);
  std::string key = s.object ? text_of(s.object.get()) : "";
  switch (s.what) {
    case Do::Slot:
      return "L[" + std::to_string(s.parent) + "][" + std::to_string(s.index) +
             "]";
    case Do::Constant:
      return PyDict_Check(s.object.get()) ? "G" : key;
    case Do::InstanceItem:
    case Do::Attribute:
      return name(s.parent) + "." + std::string(key, 1, key.size() - 2);
    case Do::Content:
      return name(s.parent) + ".cell_contents";
    case Do::Item:
      return name(s.parent) + "[" + std::to_string(s.index) + "]";
    default:
      return name(s.parent) + "[" + key + "]";
  }
}

std::string Guards::failure() const {
  if (steps_.empty()) return "none";
  const Step& s = steps_[failed_];
  return std::string(word(s.what)) + " of " + name(s.place);
}

}  // namespace taeda::capture
