// How outside objects are found again, and what must hold of them.
#pragma once

#include <taeda/csrc/compiler/capture/class_stamp.h>
#include <taeda/csrc/compiler/capture/dict_stamp.h>
#include <taeda/csrc/compiler/capture/distinct.h>
#include <taeda/csrc/compiler/capture/sizes.h>

#include <memory>
#include <span>

namespace taeda::capture {

using python::checked;
using python::PythonError;
using python::Ref;

// Steps run in order; each fetch writes one slot of `values`. A check comes
// before any fetch that counts on it.
enum class Do : uint8_t {
  Slot,          // local or stack slot `index` of frame `parent`
  Constant,      // `object`
  FunctionMode,  // `index` of the thread: Note [Modes of functions]
  DictItem,      // of the dict at `parent`, by key
  InstanceItem,  // of the __dict__ of the object at `parent`
  Attribute,     // getattr, for what is rarely asked
  Item,          // of a list or tuple
  Content,       // of a cell
  Elements,      // a list of those of the iterable at `parent`
  Called,        // of the cached function at `parent`, (args, kwargs) `object`
  Reduced,       // what __reduce__ of the iterator at `parent` returns
  Mapping,       // what the mapping proxy at `parent` shows
  Referent,      // of the weak reference at `parent`, or None
  CheckType,
  CheckIs,
  CheckEqual,  // an immutable value of exactly this type
  CheckLength,
  CheckKeys,     // the keys of a dict, in order
  CheckOwnKeys,  // those of the __dict__ of the object, in order
  CheckSet,      // an equal set
  CheckAbsent,   // no such attribute in __dict__
  CheckUnset,    // an empty slot of this name
  CheckNoItem,   // no such key
  CheckEmpty,    // the fetch found nothing
  CheckSame,     // the object at place `index`
  CheckCode,     // a function of the code and defaults in the tuple `object`
  CheckClass,    // of a class: Note [Methods of classes]
  CheckTensor,
  CheckMode,      // a mode of this state: Note [Modes in graphs]
  CheckSizes,     // of all symbols: Note [Sizes that differ]
  CheckDistinct,  // of many places: Note [Different objects]
};

// What code that a tensor went through may have looked at.
struct TensorFacts {
  PyTypeObject* type;
  DimVector sizes, strides;
  ScalarType dtype;
  DeviceType device;
  bool requires_grad, symbolic, leaf, inference;
  bool free = false;   // some sizes or strides are left to CheckSizes: kFree
  bool loose = false;  // only the class counts: Note [Filtered guards]
  Ref marks;           // the dims that mark_dynamic named, or null
  explicit TensorFacts(PyObject* tensor);
  bool hold(PyObject* tensor) const;
  // Leaves to CheckSizes what is a symbol.
  void leave(ArrayRef<SymInt> symbolic_sizes,
             ArrayRef<SymInt> symbolic_strides);

 private:
  static constexpr int64_t kFree = -1;
  bool has_geometry(IntArrayRef other_sizes, IntArrayRef other_strides) const;
  bool has_marks(PyObject* tensor) const;
};

struct Step {
  Do what;
  int place;  // written by fetches, read by checks
  int parent = -1;
  int64_t index = 0;
  Ref object = {};
  std::unique_ptr<TensorFacts> facts = nullptr;
  std::shared_ptr<ClassStamp> stamp = nullptr;
};

struct FrameState {
  PyObject** slots;
};

struct Again {
  int step = -1;  // to be run again, or
  int place = 0;  // whose dict was stamped: Note [Versions of dicts]
  bool of_instance = false;
  DictStamp stamp = {};
};

class Guards {
 public:
  int fetch(Do what, int parent, PyObject* object, int64_t index = 0);
  void check(Do what, int place, PyObject* object, int64_t index = 0);
  TensorFacts& check_tensor(int place, PyObject* tensor);
  void check_class(int place, PyTypeObject* type);
  // After all others.
  void check_distinct(std::vector<int> places);
  void check_sizes(std::unique_ptr<SizeGuards> guards);
  // What must hold of symbols, as text with the line that asked.
  std::vector<std::string> conditions() const;
  // Those that the last hold() read, by the numbers of symbols.
  const std::vector<int64_t>& symbols() const { return symbols_; }
  // Fills `values` with borrowed references; false at the first step that does
  // not hold, whose number goes to `failed`.
  bool hold(std::span<const FrameState> frames) const;
  // Lets go of what hold() fetched, which would live until the next call; for
  // who has references to all values, so that nothing ends here.
  void release() const { kept_.clear(); }
  size_t places() const { return places_; }
  size_t size() const { return steps_.size(); }
  PyObject* value(int place) const { return values_[place]; }
  // Which step failed, in words; right after hold() said no.
  std::string failure() const;
  // What is checked, in words.
  std::vector<std::string> texts() const;
  const Step& step_of(int place) const { return steps_[made_by_[place]]; }
  std::string name(int place) const;
  // One tuple for each check: name, whether it has a value, the value, kind,
  // and whether it is of a global, of a module, of one of the library's
  // modules.
  Ref entries(PyObject* module_class) const;
  // Leaves the checks that are `kept`, by their order, and fetches of places
  // that these or others `read`: Note [Filtered guards].
  void keep(const std::vector<bool>& kept, const std::vector<bool>& read);
  // Calls a place by another name.
  void label(int place, std::string name) { labels_[place] = std::move(name); }

 private:
  bool walk(std::span<const FrameState> frames) const;
  bool run(const Step& s, std::span<const FrameState> frames) const;
  bool holds(const Step& s) const;
  bool hold_again(std::span<const FrameState> frames) const;
  void stamp_dicts() const;
  std::string text(size_t step) const;
  bool is_global(int place) const;
  PyObject* module_of(int place, PyTypeObject* modules) const;
  std::vector<bool> steps_left(const std::vector<bool>& kept,
                               std::vector<bool> read);
  std::vector<Step> steps_;
  std::unordered_map<int, std::string> labels_;
  std::vector<size_t> made_by_;
  size_t places_ = 0;
  // Scratch of hold(), which the GIL and `busy_` guard: what runs Python code
  // are fetches of attributes and the like, whose results are kept here.
  mutable std::vector<PyObject*> values_;
  mutable std::vector<Ref> kept_;
  mutable size_t failed_ = 0;
  mutable bool busy_ = false;  // a second walk beside one counts as failed
  std::unique_ptr<SizeGuards> sizes_;
  std::unique_ptr<Distinct> distinct_;
  mutable std::vector<int64_t> symbols_;
  mutable std::vector<Again> again_;  // empty when nothing is noted
};

}  // namespace taeda::capture
