// Whether a class is as it was.
#pragma once

#include <taeda/csrc/compiler/capture/graph.h>

#include <memory>

namespace taeda::capture {

// Note [Methods of classes]
// C code finds `__len__`, `__call__`, `__init__`, `__get__` and their like on
// an object's class without asking anybody, and so finds another one when a
// program replaces it there or on a class behind. So of each class that a
// capture has met the methods and other descriptors are guarded. A class has a
// number that is new after each change, so that no more than this is looked at
// while nothing happens. A change of other attributes (counters, say) gives a
// new number too: the methods are compared then. The library's own classes get
// and exchange methods when these are first asked for, which is no change.
class ClassStamp {
 public:
  // Captures share that of a class.
  static std::shared_ptr<ClassStamp> of(PyTypeObject* type);
  bool holds() {
    return type()->tp_version_tag == version_ && version_ != 0 ? true
                                                               : compare();
  }
  explicit ClassStamp(PyTypeObject* type);

 private:
  PyTypeObject* type() const {
    return reinterpret_cast<PyTypeObject*>(type_.get());
  }
  bool compare();
  void note_version();
  Ref type_, order_;
  unsigned int version_ = 0;
  struct Member {
    PyTypeObject* base;  // `order_` keeps it
    Ref name, value;
  };
  std::vector<Member> members_;
  size_t programs_ = 0;  // how many of them are the program's
};

}  // namespace taeda::capture
