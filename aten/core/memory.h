// Tensors over given memory: a part of a storage, or what another library owns
// and hands over by DLPack.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

// A tensor over memory that `memory` frees, where it has a deleter.
TAEDA_API TensorBase over_memory(DataPtr memory,
                                 size_t bytes,
                                 ScalarType dtype,
                                 IntArrayRef sizes,
                                 IntArrayRef strides,
                                 Device device = Device());

// Points `t` at a part of a storage, which grows where it may; RuntimeError
// when the part lies outside.
TAEDA_API void set_storage(const TensorBase& t,
                           const Storage& s,
                           int64_t offset,
                           IntArrayRef sizes,
                           IntArrayRef strides);

// DLPack, 0.8 and (versioned) 1.0. The structures are those of dlpack.h.
namespace dlpack {
struct DLDevice {
  int32_t type;
  int32_t id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  struct {
    uint32_t major;
    uint32_t minor;
  } version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

constexpr uint64_t kCopied = 2;  // a flag

// A new structure that keeps the tensor alive until its deleter is called.
template <class Managed>
TAEDA_API Managed* from_tensor(const TensorBase& t);
// A tensor over the memory that a structure describes; `release` is called with
// the structure when the tensor's memory is free. ValueError for devices and
// types that no tensor has.
TAEDA_API TensorBase to_tensor(const DLTensor& described,
                               void* managed,
                               void (*release)(void* managed, size_t));
}  // namespace dlpack

}  // namespace taeda
