// Operators that hand-written bindings call by name, through the dispatcher:
// they are looked up once, when first called.
#pragma once

#include <taeda/aten/core/dispatcher.h>
#include <taeda/csrc/python/common.h>

namespace taeda::python {

// LateOp<R(A...)> op("index", "Tensor"); the C++ types must be the operator's.
template <class Signature>
class LateOp;

template <class R, class... A>
class LateOp<R(A...)> {
 public:
  constexpr LateOp(const char* name, const char* overload)
      : name_(name), overload_(overload) {}
  bool exists() { return find() != nullptr; }
  R operator()(DispatchKeySet keys, A... args) {
    OperatorEntry* entry = find();
    if (TAEDA_UNLIKELY(entry == nullptr)) {
      throw_error(ErrorKind::NotImplemented,
                  str_cat("the operator ", name_, " does not exist yet"));
    }
    return dispatch<R, A...>(*entry, keys, args...);
  }

 private:
  OperatorEntry* find() {
    if (entry_ == nullptr) entry_ = Dispatcher::get().find(name_, overload_);
    return entry_;
  }
  const char* name_;
  const char* overload_;
  OperatorEntry* entry_ = nullptr;
};

}  // namespace taeda::python
