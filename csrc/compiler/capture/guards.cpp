#include <taeda/csrc/compiler/capture/function_modes.h>
#include <taeda/csrc/compiler/capture/guards.h>
#include <taeda/csrc/compiler/capture/kinds.h>
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

// By a mapping proxy or a weak reference.
PyObject* shown_by(PyObject* o) {
  return is_mapping_proxy(o) ? mapping_of(o) : PyWeakref_GetObject(o);
}

bool has_code(PyObject* function, PyObject* parts) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  auto is = [&](PyObject* now, int i) {
    return (now == nullptr ? Py_None : now) == PyTuple_GET_ITEM(parts, i);
  };
  return PyFunction_Check(function) && is(f->func_code, 0) &&
         is(f->func_defaults, 1) && is(f->func_kwdefaults, 2);
}

bool lacks(PyObject* dict, PyObject* key) {
  return dict == nullptr || PyDict_Contains(dict, key) == 0;
}

bool has_keys(PyObject* dict, PyObject* keys) {
  if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  PyObject* key;
  Py_ssize_t at = 0;
  Py_ssize_t i = 0;
  if (PyODict_Check(dict)) {
    Ref own = keys_of(dict);
    for (PyObject* each : python::items_of(own.get())) {
      if (!equal(each, PyTuple_GET_ITEM(keys, i++))) return false;
    }
    return true;
  }
  while (PyDict_Next(dict, &at, &key, nullptr)) {
    if (!equal(key, PyTuple_GET_ITEM(keys, i++))) return false;
  }
  return true;
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
  PyObject* own = python::as_tensor(tensor)->dict;
  PyObject* asked =
      own ? PyDict_GetItemString(own, "_dynamo_dynamic_indices") : nullptr;
  if (asked != nullptr) marks = checked(PySet_New(asked));
}

void TensorFacts::leave(ArrayRef<SymInt> symbolic_sizes,
                        ArrayRef<SymInt> symbolic_strides) {
  free = true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (symbolic_sizes[d].is_symbolic()) sizes[d] = kFree;
    if (symbolic_strides[d].is_symbolic()) strides[d] = kFree;
  }
}

bool TensorFacts::has_geometry(IntArrayRef other_sizes,
                               IntArrayRef other_strides) const {
  if (!free) {
    return other_sizes == IntArrayRef(sizes) &&
           other_strides == IntArrayRef(strides);
  }
  if (other_sizes.size() != sizes.size()) return false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool size = sizes[d] == kFree || sizes[d] == other_sizes[d];
    bool stride = strides[d] == kFree || strides[d] == other_strides[d];
    if (!size || !stride) return false;
  }
  return true;
}

// A tensor whose dims are marked needs a graph that was made for such marks.
bool TensorFacts::has_marks(PyObject* tensor) const {
  PyObject* own = python::as_tensor(tensor)->dict;
  if (own == nullptr) return true;
  PyObject* asked = PyDict_GetItemString(own, "_dynamo_dynamic_indices");
  if (asked == nullptr) return true;
  if (!marks) return false;
  int contained = PyObject_RichCompareBool(asked, marks.get(), Py_LE);
  if (contained < 0) PyErr_Clear();
  return contained == 1;
}

bool TensorFacts::hold(PyObject* tensor) const {
  if (Py_TYPE(tensor) != type) return false;
  const TensorImpl& t = *python::unwrap(tensor).impl();
  if (loose) return !free || t.sizes().size() == sizes.size();
  return t.dtype() == dtype && t.requires_grad() == requires_grad &&
         has_geometry(t.sizes(), t.strides()) && t.device().type == device &&
         t.is_inference == inference &&
         (!requires_grad || is_leaf(tensor) == leaf) && has_marks(tensor);
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

TensorFacts& Guards::check_tensor(int place, PyObject* tensor) {
  steps_.push_back({Do::CheckTensor, place});
  steps_.back().facts = std::make_unique<TensorFacts>(tensor);
  return *steps_.back().facts;
}

void Guards::check_class(int place, PyTypeObject* type) {
  steps_.push_back({Do::CheckClass, place});
  steps_.back().stamp = ClassStamp::of(type);
}

void Guards::check_sizes(std::unique_ptr<SizeGuards> guards) {
  sizes_ = std::move(guards);
  steps_.push_back({Do::CheckSizes, sizes_->sources.at(0).place});
}

void Guards::check_distinct(std::vector<int> places) {
  steps_.push_back({Do::CheckDistinct, places.at(0)});
  distinct_ = std::make_unique<Distinct>(std::move(places));
}

std::vector<std::string> Guards::conditions() const {
  std::vector<std::string> out;
  if (!sizes_) return out;
  for (const SizeGuards::Condition& c : sizes_->conditions) {
    out.push_back(c.where.empty() ? c.text : c.text + "  # " + c.where);
  }
  return out;
}

bool Guards::run(const Step& s, std::span<const FrameState> frames) const {
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
    case Do::FunctionMode: {
      std::vector<Ref> modes = function_modes();
      auto at = static_cast<size_t>(s.index);
      if (at >= modes.size()) return false;
      kept_.push_back(std::move(modes[at]));
      own = kept_.back().get();
      return true;
    }
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
      kept_.emplace_back(PyObject_Call(
          parent, PyTuple_GET_ITEM(key, 0), PyTuple_GET_ITEM(key, 1)));
      own = kept_.back().get();
      return own != nullptr;
    case Do::Reduced:
      kept_.emplace_back(
          PyObject_CallMethodNoArgs(parent, python::interned<"__reduce__">()));
      own = kept_.back().get();
      return own != nullptr;
    case Do::Mapping:
    case Do::Referent:
      own = shown_by(parent);
      return own != nullptr;
    default:
      return holds(s);
  }
}

// Of what a place holds now.
bool Guards::holds(const Step& s) const {
  PyObject* own = values_[s.place];
  PyObject* key = s.object.get();
  switch (s.what) {
    case Do::CheckType:
      return Py_TYPE(own) == reinterpret_cast<PyTypeObject*>(key);
    case Do::CheckIs:
      return own == key;
    case Do::CheckEqual:
    case Do::CheckSet:
      return equal(own, key);
    case Do::CheckLength:
      return Py_SIZE(own) == s.index;
    case Do::CheckKeys:
      return has_keys(own, key);
    case Do::CheckOwnKeys: {
      PyObject* dict = instance_dict(own);
      return dict == nullptr ? PyTuple_GET_SIZE(key) == 0 : has_keys(dict, key);
    }
    case Do::CheckAbsent:
      return lacks(instance_dict(own), key);
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
    case Do::CheckCode:
      return has_code(own, key);
    case Do::CheckClass:
      return s.stamp->holds();
    case Do::CheckTensor:
      return s.facts->hold(own);
    case Do::CheckMode:
      return equal(state_of_mode(own).get(), key);
    case Do::CheckSizes:
      return sizes_->hold(values_, symbols_);
    case Do::CheckDistinct:
      return distinct_->hold(values_);
    default:
      return false;
  }
}

namespace {

PyObject* dict_at(PyObject* o, bool of_instance) {
  return of_instance ? instance_dict(o) : o;
}

bool reads_dict(Do what) {
  return what == Do::DictItem || what == Do::InstanceItem ||
         what == Do::CheckAbsent || what == Do::CheckNoItem ||
         what == Do::CheckKeys || what == Do::CheckOwnKeys;
}

bool compares(Do what) { return what == Do::CheckIs || what == Do::CheckEqual; }

}  // namespace

void Guards::stamp_dicts() const {
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
    // Its order may change while its memory does not.
    if (s.what == Do::CheckKeys && PyODict_Check(values_[holder])) {
      again_.push_back({static_cast<int>(i)});
    }
    bool of_instance = s.what == Do::InstanceItem ||
                       s.what == Do::CheckAbsent || s.what == Do::CheckOwnKeys;
    if (fetches) fixed[s.place] = true;
    if (noted[2 * holder + of_instance]) continue;
    noted[2 * holder + of_instance] = true;
    PyObject* dict = dict_at(values_[holder], of_instance);
    again_.push_back({-1, holder, of_instance, DictStamp(dict)});
  }
  if (distinct_) distinct_->settle(values_, fixed);
}

// The same question, when only the noted dicts have to be the same.
bool Guards::hold_again(std::span<const FrameState> frames) const {
  for (const Again& a : again_) {
    if (a.step >= 0) {
      if (steps_[a.step].what == Do::CheckDistinct) {
        if (!distinct_->hold_again(values_)) return false;
        continue;
      }
      if (!run(steps_[a.step], frames)) return false;
      continue;
    }
    if (!a.stamp.holds(dict_at(values_[a.place], a.of_instance))) return false;
  }
  return true;
}

bool Guards::hold(std::span<const FrameState> frames) const {
  // A property that a fetch reads lets other threads in, or calls us again.
  if (busy_) return false;
  busy_ = true;
  bool holds = walk(frames);
  busy_ = false;
  return holds;
}

bool Guards::walk(std::span<const FrameState> frames) const {
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
  stamp_dicts();
  return true;
}

}  // namespace taeda::capture
