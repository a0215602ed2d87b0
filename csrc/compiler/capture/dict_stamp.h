// Whether a dict is as it was.
#pragma once

#include <Python.h>

#include <memory>

namespace taeda::capture {

// Note [Versions of dicts]
// A model's guards are mostly about what stands in dicts that nobody changes.
// After all steps held, the dicts that they read are stamped; as long as those
// did not change, the values that were read are the same, and only what can
// change without a dict is looked at again: tensors, lists, cells, classes. The
// walk goes from parents to children, so that a dict is touched only after the
// one that keeps it alive was found unchanged.
// CPython 3.11 gives each dict a number that is new after each change. Later
// ones keep these numbers for themselves (PEP 699), but call back before a
// watched dict changes or dies. A dict is watched until then, and its stamps
// share one mark.
class DictStamp {
 public:
  DictStamp() = default;
  // Null, for an object without a dict, is equal to itself.
  explicit DictStamp(PyObject* dict);
  bool holds(PyObject* dict) const;

 private:
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* dict_ = nullptr;
  std::shared_ptr<const bool> changed_;
#else
  uint64_t version_ = 0;
#endif
};

}  // namespace taeda::capture
