// DLPack (v0.8 capsules "dltensor", and "dltensor_versioned" of 1.0): exchange
// of memory between array libraries. The structures are those of dlpack.h.
#include <taeda/csrc/python/exchange.h>

#include <cstring>

namespace taeda::python {

namespace {
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
constexpr uint64_t kReadOnly = 1;
constexpr uint64_t kCopied = 2;

enum Code : uint8_t {
  kIntCode = 0,
  kUIntCode = 1,
  kFloatCode = 2,
  kBfloatCode = 4,
  kComplexCode = 5,
  kBoolCode = 6,
  kFloat8_e4m3fnCode = 10,
  kFloat8_e4m3fnuzCode = 11,
  kFloat8_e5m2Code = 12,
  kFloat8_e5m2fnuzCode = 13,
  kFloat8_e8m0fnuCode = 14,
};

struct Code8 {
  ScalarType type;
  uint8_t code;
};
constexpr Code8 kFloat8Codes[] = {
    {ScalarType::Float8_e4m3fn, kFloat8_e4m3fnCode},
    {ScalarType::Float8_e4m3fnuz, kFloat8_e4m3fnuzCode},
    {ScalarType::Float8_e5m2, kFloat8_e5m2Code},
    {ScalarType::Float8_e5m2fnuz, kFloat8_e5m2fnuzCode},
    {ScalarType::Float8_e8m0fnu, kFloat8_e8m0fnuCode},
};

uint8_t code_of(ScalarType t) {
  if (t == kBool) return kBoolCode;
  if (t == kBFloat16) return kBfloatCode;
  for (const Code8& c : kFloat8Codes) {
    if (c.type == t) return c.code;
  }
  if (is_complex(t)) return kComplexCode;
  if (is_floating(t)) return kFloatCode;
  return is_signed(t) ? kIntCode : kUIntCode;
}

ScalarType type_of(DLDataType d) {
  TAEDA_CHECK_AS(Value, d.lanes == 1, "DLPack: only one lane is supported");
  for (int i = 0; i < kNumScalarTypes; ++i) {
    auto t = static_cast<ScalarType>(i);
    if (element_size(t) * 8 == d.bits && code_of(t) == d.code) return t;
  }
  throw_error(ErrorKind::Value,
              str_cat("DLPack: unsupported type code ",
                      static_cast<int>(d.code),
                      " with ",
                      static_cast<int>(d.bits),
                      " bits"));
}

// What an exported capsule keeps alive, with its shape and strides.
template <class Managed>
struct Exported {
  Managed managed{};
  TensorBase tensor;
  std::vector<int64_t> geometry;
};

template <class Managed>
void delete_exported(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->context);
}

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

template <class Managed>
void capsule_destructor(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (name == nullptr || std::strncmp(name, "used", 4) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed != nullptr && managed->deleter != nullptr) {
    managed->deleter(managed);
  }
}

template <class Managed>
Exported<Managed>* exported(const TensorBase& t) {
  auto* out = new Exported<Managed>;
  out->tensor = t;
  out->geometry = t.sizes().vec();
  for (int64_t i = 0; i < t.dim(); ++i) {
    // Dims of size 1 get the row-major stride, which some consumers insist on.
    bool free = t.sizes()[i] <= 1;
    int64_t inner = 1;
    for (int64_t k = i + 1; free && k < t.dim(); ++k) inner *= t.sizes()[k];
    out->geometry.push_back(free ? inner : t.strides()[i]);
  }
  DLTensor& d = out->managed.tensor;
  d.data = t.mutable_raw_data();
  d.device = {1, 0};
  d.ndim = static_cast<int32_t>(t.dim());
  d.dtype = {code_of(t.dtype()), static_cast<uint8_t>(t.itemsize() * 8), 1};
  d.shape = out->geometry.data();
  d.strides = out->geometry.data() + t.dim();
  d.byte_offset = 0;
  out->managed.context = out;
  out->managed.deleter = delete_exported<Managed>;
  return out;
}

void check_exportable(const TensorBase& t) {
  if (t.is_cpu()) return;
  raise(PyExc_BufferError,
        str_cat("DLPack: only CPU tensors can be exported, got one on ",
                t.device()));
}

PyObject* capsule_of(const TensorBase& t, bool versioned, bool copied) {
  check_exportable(t);
  if (!versioned) {
    auto* e = exported<DLManagedTensor>(t);
    return PyCapsule_New(
        &e->managed, kName, capsule_destructor<DLManagedTensor>);
  }
  auto* e = exported<DLManagedTensorVersioned>(t);
  e->managed.version = {1, 0};
  e->managed.flags = copied ? kCopied : 0;
  return PyCapsule_New(&e->managed,
                       kVersionedName,
                       capsule_destructor<DLManagedTensorVersioned>);
}

template <class Managed>
TensorBase import_managed(Managed* managed) {
  const DLTensor& d = managed->tensor;
  TAEDA_CHECK_AS(Value,
                 d.device.type == 1,
                 "DLPack: unsupported device type ",
                 d.device.type);
  ScalarType dtype = type_of(d.dtype);
  auto rank = static_cast<size_t>(d.ndim);
  IntArrayRef sizes(d.shape, rank);
  DimVector strides = d.strides != nullptr
                          ? DimVector(IntArrayRef(d.strides, rank))
                          : contiguous_strides(sizes);
  checked_numel("from_dlpack", sizes);
  size_t bytes = required_bytes(sizes, strides, 0, element_size(dtype));
  auto release = [](void* context, size_t) {
    auto* m = static_cast<Managed*>(context);
    if (m->deleter == nullptr) return;
    if (!Py_IsInitialized()) return;
    GilAcquire gil;  // producers may be Python objects
    m->deleter(m);
  };
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  auto storage = make_intrusive<StorageImpl>(
      DataPtr{data, managed, release}, bytes, Device());
  auto impl =
      make_intrusive<TensorImpl>(std::move(storage), dtype, DispatchKey::CPU);
  impl->set_sizes_and_strides(sizes, strides);
  return TensorBase(std::move(impl));
}

PyObject* import_capsule(PyObject*, PyObject* capsule) {
  return guarded([&] {
    if (PyCapsule_IsValid(capsule, kVersionedName)) {
      auto* m = static_cast<DLManagedTensorVersioned*>(
          PyCapsule_GetPointer(capsule, kVersionedName));
      TAEDA_CHECK_AS(Value,
                     m->version.major == 1,
                     "DLPack: unsupported major version ",
                     static_cast<int64_t>(m->version.major));
      TensorBase t = import_managed(m);
      PyCapsule_SetName(capsule, kUsedVersionedName);
      return wrap(std::move(t));
    }
    if (!PyCapsule_IsValid(capsule, kName)) {
      raise(PyExc_RuntimeError,
            "from_dlpack received an invalid capsule. Note that DLTensor "
            "capsules can be consumed only once, so you might have already "
            "constructed a tensor from it once.");
    }
    auto* m =
        static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
    TensorBase t = import_managed(m);
    PyCapsule_SetName(capsule, kUsedName);
    return wrap(std::move(t));
  });
}

// (tensor, versioned, copied) -> capsule
PyObject* export_capsule(PyObject*, PyObject* args) {
  PyObject* tensor;
  int versioned = 0, copied = 0;
  if (!PyArg_ParseTuple(args, "O|pp", &tensor, &versioned, &copied)) {
    return nullptr;
  }
  return guarded([&] {
    return capsule_of(
        unwrap_checked(tensor, "to_dlpack"), versioned != 0, copied != 0);
  });
}

PyMethodDef functions[] = {
    {"_from_dlpack", import_capsule, METH_O, nullptr},
    {"_to_dlpack", export_capsule, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
}  // namespace

PyObject* dlpack_device_method(const TensorBase& t) {
  check_exportable(t);
  return Py_BuildValue("(ii)", 1, 0);
}

void init_dlpack(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
