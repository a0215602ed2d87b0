// Device memory that another process opens.
#include <taeda/aten/core/memory.h>
#include <taeda/c10/core/gpu_parts.h>
#include <taeda/csrc/gpu/bind.h>

namespace taeda::python {

namespace {

// (device, bytes of a page, offset, handle, descriptors)
py::tuple share(const TensorBase& t) {
  GpuShared shared = gpu().sharing().share(t.storage()->data());
  return py::make_tuple(shared.device,
                        shared.page,
                        shared.offset,
                        py::bytes(shared.handle),
                        shared.descriptors);
}

// The block's bytes; `closed` is called when nobody uses them any more.
struct Opened {
  DataPtr memory;
  PyObject* closed;
};

void close_memory(void* context, size_t bytes) {
  std::unique_ptr<Opened> mine(static_cast<Opened*>(context));
  mine->memory.deleter(mine->memory.context, bytes);
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  PyObject* done = PyObject_CallNoArgs(mine->closed);
  if (done == nullptr) PyErr_WriteUnraisable(mine->closed);
  Py_XDECREF(done);
  Py_DECREF(mine->closed);
}

TensorBase open(int device,
                size_t page,
                size_t offset,
                const std::string& handle,
                std::vector<int> descriptors,
                size_t bytes,
                py::object closed) {
  GpuShared shared{device, page, offset, handle, std::move(descriptors)};
  auto opened = std::make_unique<Opened>();
  opened->memory = gpu().sharing().open(shared);
  opened->closed = closed.release().ptr();
  void* data = opened->memory.data;
  DimVector sizes = {static_cast<int64_t>(bytes)}, strides = {1};
  Device there(DeviceType::CUDA, static_cast<int8_t>(device));
  return over_memory(DataPtr{data, opened.release(), close_memory},
                     bytes,
                     kByte,
                     sizes,
                     strides,
                     there);
}

}  // namespace

void bind_sharing(py::module_& m) {
  m.def("share", share);
  m.def("open", open);
}

}  // namespace taeda::python
