// How outside objects are found again, and what must hold of them.
#pragma once

#include <taeda/csrc/python/tensor_type.h>

#include <memory>

namespace taeda::capture {

using python::checked;
using python::PythonError;
using python::Ref;

// Steps run in order; each fetch writes one slot of `values`. A check comes
// before any fetch that counts on it.
enum class Do : uint8_t {
  Slot,          // local or stack slot `index` of frame `parent`
  Constant,      // `object`
  DictItem,      // of the dict at `parent`, by key
  InstanceItem,  // of the __dict__ of the object at `parent`
  Attribute,     // getattr, for what is rarely asked
  Item,          // of a list or tuple
  Content,       // of a cell
  Elements,      // a list of those of the iterable at `parent`
  Called,        // of the cached function at `parent`, with arguments `object`
  Reduced,       // what __reduce__ of the iterator at `parent` returns
  CheckType,
  CheckIs,
  CheckEqual,  // an immutable value of exactly this type
  CheckLength,
  CheckKeys,    // the keys of a dict, in order
  CheckSet,     // an equal set
  CheckAbsent,  // no such attribute in __dict__
  CheckUnset,   // an empty slot of this name
  CheckNoItem,  // no such key
  CheckEmpty,   // the fetch found nothing
  CheckSame,    // the object at place `index`
  CheckTensor,
  CheckMode,  // a mode of this state: Note [Modes in graphs]
};

// What code that a tensor went through may have looked at.
struct TensorFacts {
  PyTypeObject* type;
  DimVector sizes, strides;
  ScalarType dtype;
  DeviceType device;
  bool requires_grad, symbolic, leaf, inference;
  explicit TensorFacts(PyObject* tensor);
  bool hold(PyObject* tensor) const;
};

struct Step {
  Do what;
  int place;  // written by fetches, read by checks
  int parent = -1;
  int64_t index = 0;
  Ref object;
  std::unique_ptr<TensorFacts> facts = nullptr;
};

struct FrameState {
  PyObject** slots;
};

// Note [Versions of dicts]
// A model's guards are mostly about what stands in dicts that nobody changes.
// CPython gives each dict a number that is new after each change. After all
// steps held, the numbers of the dicts that they read are noted; as long as
// those are the same, so are the values that were read, and only what can
// change without a dict is looked at again: tensors, lists, cells, classes. The
// walk goes from parents to children, so that a dict is touched only after the
// one that keeps it alive was found unchanged. (3.13 has no such numbers; there
// a watcher of dicts has to mark the guards.)
struct Again {
  int step = -1;  // to be run again, or
  int place = 0;  // whose dict has this number
  bool of_instance = false;
  uint64_t version = 0;
};

class Guards {
 public:
  int fetch(Do what, int parent, PyObject* object, int64_t index = 0);
  void check(Do what, int place, PyObject* object, int64_t index = 0);
  void check_tensor(int place, PyObject* tensor);
  // Fills `values` with borrowed references; false at the first step that does
  // not hold, whose number goes to `failed`.
  bool hold(const std::vector<FrameState>& frames) const;
  size_t places() const { return places_; }
  size_t size() const { return steps_.size(); }
  PyObject* value(int place) const { return values_[place]; }
  // Which step failed last, in words.
  std::string failure() const;
  const Step& step_of(int place) const { return steps_[made_by_[place]]; }
  std::string name(int place) const;

 private:
  bool run(const Step& s, const std::vector<FrameState>& frames) const;
  bool hold_again(const std::vector<FrameState>& frames) const;
  void note_versions() const;
  std::vector<Step> steps_;
  std::vector<size_t> made_by_;
  size_t places_ = 0;
  // Scratch of hold(), which the GIL guards: nothing it calls runs Python code
  // but Attribute, whose results are kept here.
  mutable std::vector<PyObject*> values_;
  mutable std::vector<Ref> kept_;
  mutable size_t failed_ = 0;
  mutable std::vector<Again> again_;  // empty when nothing is noted
};

}  // namespace taeda::capture
