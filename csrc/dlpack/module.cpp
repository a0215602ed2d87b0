// The extension module taeda._dlpack: the capsules "dltensor" and
// "dltensor_versioned", by which array libraries exchange memory. See
// aten/core/memory.h.
#include <taeda/aten/core/memory.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/lent.h>

#include <cstring>

namespace taeda::python {

namespace {
using dlpack::DLManagedTensor;
using dlpack::DLManagedTensorVersioned;

template <class Managed>
constexpr bool kVersioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
template <class Managed>
constexpr const char* kName =
    kVersioned<Managed> ? "dltensor_versioned" : "dltensor";
template <class Managed>
constexpr const char* kUsedName =
    kVersioned<Managed> ? "used_dltensor_versioned" : "used_dltensor";

// Null for other capsules and for used ones.
template <class Managed>
Managed* content(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName<Managed>)) return nullptr;
  return static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName<Managed>));
}

// Nobody took the memory over if the capsule still has its first name.
template <class Managed>
void destroy_capsule(PyObject* capsule) {
  auto* managed = content<Managed>(capsule);
  if (managed != nullptr && managed->deleter != nullptr) {
    managed->deleter(managed);
  }
}

template <class Managed>
py::object capsule_of(Managed* managed) {
  return owned(
      PyCapsule_New(managed, kName<Managed>, destroy_capsule<Managed>));
}

py::object to_dlpack(const TensorBase& t, bool versioned, bool copied) {
  if (!t.is_cpu()) {
    raise(PyExc_BufferError,
          "DLPack: only CPU tensors can be exported, got one on {}",
          t.device());
  }
  if (!versioned) return capsule_of(dlpack::from_tensor<DLManagedTensor>(t));
  auto* managed = dlpack::from_tensor<DLManagedTensorVersioned>(t);
  managed->version = {1, 0};
  managed->flags = copied ? dlpack::kCopied : 0;
  return capsule_of(managed);
}

template <class Managed>
void release(void* context, size_t) {
  auto* managed = static_cast<Managed*>(context);
  if (managed->deleter == nullptr || !Py_IsInitialized()) return;
  GilAcquire gil;  // producers may be Python objects
  managed->deleter(managed);
}

// Takes the memory over, so that the capsule may not be used again.
template <class Managed>
TensorBase consume(PyObject* capsule, Managed* managed) {
  TensorBase t = dlpack::to_tensor(managed->tensor, managed, release<Managed>);
  check_status(PyCapsule_SetName(capsule, kUsedName<Managed>));
  return t;
}
TensorBase from_dlpack(py::handle capsule) {
  if (auto* m = content<DLManagedTensorVersioned>(capsule.ptr())) {
    TAEDA_CHECK_AS(Value,
                   m->version.major == 1,
                   "DLPack: unsupported major version ",
                   m->version.major);
    return consume(capsule.ptr(), m);
  }
  auto* m = content<DLManagedTensor>(capsule.ptr());
  TAEDA_CHECK(m != nullptr,
              "from_dlpack received an invalid capsule. Note that DLTensor "
              "capsules can be consumed only once, so you might have already "
              "constructed a tensor from it once.");
  return consume(capsule.ptr(), m);
}
}  // namespace

}  // namespace taeda::python

PYBIND11_MODULE(_dlpack, m) {
  using namespace taeda::python;
  borrow_from_native();
  m.def("from_dlpack", from_dlpack);
  m.def("to_dlpack",
        to_dlpack,
        py::arg("tensor"),
        py::arg("versioned") = false,
        py::arg("copied") = false);
}
