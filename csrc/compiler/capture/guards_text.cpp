// Guards in words.
#include <taeda/c10/core/tensor_impl.h>
#include <taeda/csrc/compiler/capture/capture.h>
#include <taeda/csrc/compiler/capture/guards.h>

namespace taeda::capture {
namespace {

std::string text_of(PyObject* o) {
  Ref text(PyObject_Repr(o));
  const char* s = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (s == nullptr) PyErr_Clear();
  return s == nullptr ? "?" : s;
}

template <class Numbers>
std::string numbers_of(const Numbers& numbers) {
  std::string out = "[";
  for (auto n : numbers) {
    out += (out.size() > 1 ? ", " : "") + std::to_string(n);
  }
  return out + "]";
}

std::string type_name(PyObject* type) {
  return reinterpret_cast<PyTypeObject*>(type)->tp_name;
}

std::string text_of(const TensorFacts& t) {
  return std::string(dtype_name(t.dtype)) + numbers_of(t.sizes) + ", strides " +
         numbers_of(t.strides) + ", requires_grad " +
         (t.requires_grad ? "True" : "False");
}

// Of a member of an enum; null for all else.
PyObject* name_of_member(PyObject* o) {
  PyObject** own = _PyObject_GetDictPtr(o);
  PyObject* name = own && *own ? PyDict_GetItemString(*own, "_name_") : nullptr;
  return name != nullptr && PyUnicode_Check(name) && is_enum(o) ? name
                                                                : nullptr;
}

// Of a value, so that different keys have different texts; no code of other
// objects is asked, since it would be captured.
std::string key_text(PyObject* o) {
  if (o == nullptr) return "";
  PyObject* dtype = library().dtype_type.get();
  if (is_value(o) || is_tuple_of_values(o) || type_of(o) == dtype) {
    return text_of(o);
  }
  if (PyObject* member = name_of_member(o)) {
    return std::string(Py_TYPE(o)->tp_name) + "." + PyUnicode_AsUTF8(member);
  }
  const char* name = Py_TYPE(o)->tp_name;
  if (PyType_Check(o)) name = reinterpret_cast<PyTypeObject*>(o)->tp_name;
  if (PyModule_Check(o)) name = PyModule_GetName(o);
  if (PyFunction_Check(o)) {
    name =
        PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(o)->func_qualname);
  }
  return name == nullptr ? "?" : name;
}

}  // namespace

std::string Guards::name(int place) const {
  if (auto label = labels_.find(place); label != labels_.end()) {
    return label->second;
  }
  const Step& s = step_of(place);
  std::string key = key_text(s.object.get());
  switch (s.what) {
    case Do::Slot:
      if (s.object) return "L[" + key + "]";
      return "L['stack" + std::to_string(s.index) + "']";
    case Do::Constant:
      return PyDict_Check(s.object.get()) ? "G" : key;
    case Do::FunctionMode:
      return "function_modes[" + std::to_string(s.index) + "]";
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

std::string Guards::text(size_t i) const {
  const Step& s = steps_[i];
  std::string it = name(s.place);
  PyObject* key = s.object.get();
  switch (s.what) {
    case Do::CheckType:
      return "type of " + it + " is " + type_name(key);
    case Do::CheckIs:
      return it + " is " + text_of(key);
    case Do::CheckEqual:
    case Do::CheckSet:
      return it + " == " + text_of(key);
    case Do::CheckLength:
      return "len(" + it + ") == " + std::to_string(s.index);
    case Do::CheckKeys:
      return "keys of " + it + " are " + text_of(key);
    case Do::CheckOwnKeys:
      return "attributes of " + it + " are " + text_of(key);
    case Do::CheckAbsent:
    case Do::CheckUnset:
      return it + " has no " + text_of(key) + " of its own";
    case Do::CheckNoItem:
      return text_of(key) + " not in " + it;
    case Do::CheckEmpty:
      return it + " is empty";
    case Do::CheckSame:
      return it + " is " + name(static_cast<int>(s.index));
    case Do::CheckCode:
      return it + " has the code and defaults that it had";
    case Do::CheckClass:
      return it + " has the methods that it had";
    case Do::CheckTensor:
      return it + " is " + text_of(*s.facts);
    case Do::CheckMode:
      return it + " is in state " + text_of(key);
    case Do::CheckSizes: {
      std::string all;
      for (const std::string& each : conditions()) {
        all += (all.empty() ? "" : ", ") + each;
      }
      return all.empty() ? "sizes" : all;
    }
    case Do::CheckDistinct:
      return std::to_string(distinct_->places().size()) +
             " objects are different ones";
    default:
      return it + " is there";
  }
}

std::vector<std::string> Guards::texts() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].what >= Do::CheckType) out.push_back(text(i));
  }
  return out;
}

std::string Guards::failure() const {
  if (steps_.empty()) return "no guard";
  const Step& s = steps_[failed_];
  if (s.what == Do::CheckSizes) {
    return sizes_->failure(values_, [&](int place) { return name(place); });
  }
  if (s.what == Do::CheckDistinct) {
    auto [one, other] = distinct_->twice(values_);
    return name(other) + " is " + name(one) + ", which was another object";
  }
  std::string out = text(failed_);
  if (s.what < Do::CheckType) return out;
  PyObject* found = values_[s.place];
  if (s.what == Do::CheckTensor && Py_TYPE(found) == s.facts->type) {
    return out + ", now " + text_of(TensorFacts(found));
  }
  if (s.what == Do::CheckType) return out + ", now " + Py_TYPE(found)->tp_name;
  if (s.what == Do::CheckLength) {
    return out + ", now " + std::to_string(Py_SIZE(found));
  }
  bool shown = s.what == Do::CheckIs || s.what == Do::CheckEqual;
  return shown ? out + ", now " + text_of(found) : out;
}

}  // namespace taeda::capture
