// taeda.UntypedStorage: the bytes behind tensors.
#include <taeda/aten/core/level.h>
#include <taeda/aten/core/memory.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/c10/core/kept_forms.h>
#include <taeda/c10/util/crc32.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/tensor_functions.h>
#include <taeda/gen/ops/set_.h>

#include <cstring>

namespace taeda::python {

namespace {
using SharedStorage = Shared<StorageImpl>;

SharedStorage make_empty(size_t nbytes, Device device) {
  return make_intrusive<StorageImpl>(
      nbytes, allocator_for(device.type), device);
}

SharedStorage make_storage(int64_t n, std::optional<Device> device) {
  TAEDA_CHECK(n >= 0, "UntypedStorage: negative size ", n);
  return make_empty(static_cast<size_t>(n), device.value_or(Device()));
}

// All of them as a tensor, wherever they lie.
TensorBase bytes_of(const SharedStorage& s) {
  auto impl = make_intrusive<TensorImpl>(
      Storage(s), kByte, backend_key(s->device().type));
  impl->set_sizes_contiguous({static_cast<int64_t>(s->nbytes())});
  return TensorBase(std::move(impl));
}

// A slice shares memory with the whole, which it keeps alive.
SharedStorage slice_of(const SharedStorage& whole, size_t start, size_t count) {
  auto release = [](void* context, size_t) {
    static_cast<StorageImpl*>(context)->release();
  };
  show_memory(*whole);
  char* data = static_cast<char*>(whole->mutable_data()) + start;
  void* kept = SharedStorage(whole).detach();
  return make_intrusive<StorageImpl>(
      DataPtr{data, kept, release}, count, whole->device());
}

SharedStorage fill(const SharedStorage& s, int64_t byte) {
  if (s->nbytes() > 0) fill_with(bytes_of(s), byte & 0xff);
  return s;
}

SharedStorage resize(const SharedStorage& s, int64_t n) {
  TAEDA_CHECK(n >= 0, "resize_: negative size ", n);
  TAEDA_CHECK(s->resizable(), "Trying to resize storage that is not resizable");
  s->resize(static_cast<size_t>(n));
  return s;
}

SharedStorage copy_from(const SharedStorage& to,
                        const SharedStorage& from,
                        bool) {
  TAEDA_CHECK(to->nbytes() == from->nbytes(),
              message("size does not match, self was {} bytes but src was {} "
                      "bytes",
                      to->nbytes(),
                      from->nbytes()));
  if (to->nbytes() > 0) copy_into(bytes_of(to), bytes_of(from));
  return to;
}

SharedStorage clone(const SharedStorage& s) {
  SharedStorage out = make_empty(s->nbytes(), s->device());
  if (s->nbytes() > 0) copy_into(bytes_of(out), bytes_of(s));
  return out;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded_status([&] {
    auto s = py::cast<SharedStorage>(py::handle(self));
    if (!s->device().is_cpu()) {
      raise(PyExc_BufferError, "only CPU storages have a buffer");
    }
    show_memory(*s);
    auto n = static_cast<Py_ssize_t>(s->nbytes());
    check_status(PyBuffer_FillInfo(
        view, self, s->mutable_data(), n, /*readonly=*/0, flags));
  });
}
void add_buffer(PyHeapTypeObject* type) {
  type->as_buffer.bf_getbuffer = get_buffer;
  type->ht_type.tp_as_buffer = &type->as_buffer;
}

// set_ -----------------------------------------------------------------------

// set_(tensor): takes over that tensor's memory and geometry.
void set_from_tensor(const TensorBase& t, const TensorBase& source) {
  TAEDA_CHECK_AS(
      NotImplemented,
      t.layout() == Layout::Strided && source.layout() == Layout::Strided,
      "set_: a sparse tensor has no memory to set");
  derived::check_writable(t);
  TAEDA_CHECK(t.dtype() == source.dtype(),
              message("Could not set tensor of type {} to a tensor of type {}",
                      dtype_name(t.dtype()),
                      dtype_name(source.dtype())));
  if (wrapped_or_null(t) != nullptr) {
    ops::set_(t, source);  // its level knows what that means
    return;
  }
  t.impl()->shallow_copy_from(*source.impl());
  t.impl()->bump_version();
}
}  // namespace

PyObject* untyped_storage_method(const TensorBase& t) {
  TAEDA_CHECK_AS(NotImplemented,
                 t.storage() && t.layout() == Layout::Strided &&
                     !t.keys().has(DispatchKey::Wrapped),
                 "Cannot access storage of a tensor that has none (shape ",
                 t.sizes(),
                 ", layout ",
                 t.layout(),
                 ")");
  return py::cast(SharedStorage(t.storage())).release().ptr();
}

namespace {
uint32_t checksum(const py::buffer& data, uint32_t before) {
  py::buffer_info bytes = data.request();
  py::gil_scoped_release threads_run;
  auto size = static_cast<size_t>(bytes.size * bytes.itemsize);
  return crc32(before, bytes.ptr, size);
}
}  // namespace

void init_storage(PyObject* module) {
  using Self = const SharedStorage&;
  auto* type = reinterpret_cast<PyObject*>(&PyType_Type);
  py::class_<StorageImpl, SharedStorage> c(as_module(module),
                                           "UntypedStorage",
                                           "Bytes that tensors are views of.",
                                           py::module_local(),
                                           py::metaclass(type),
                                           py::custom_type_setup(add_buffer));
  c.attr("__module__") = "taeda";
  auto nbytes = [](Self s) { return s->nbytes(); };
  c.def(py::init(&make_storage),
        py::arg("size") = 0,
        py::arg("device") = py::none())
      .def("__len__", nbytes)
      .def("nbytes", nbytes, "Its length in bytes.")
      .def("size", nbytes, "Its length in bytes.")
      .def(
          "data_ptr",
          [](Self s) {
            show_memory(*s);
            return reinterpret_cast<uintptr_t>(s->mutable_data());
          },
          "The address of its first byte.")
      .def("resizable", [](Self s) { return s->resizable(); })
      .def("_use_count", [](Self s) { return s->use_count(); })
      .def("resize_", resize, "Changes the length, keeping what fits.")
      .def("fill_", fill, "Sets every byte.")
      .def("copy_",
           copy_from,
           "Copies another storage's bytes.",
           py::arg("source"),
           py::arg("non_blocking") = false)
      .def("clone", clone, "A copy.")
      .def("__copy__", clone)
      .def("_slice", slice_of)
      .def_property_readonly(
          "device", [](Self s) { return s->device(); }, "Where the memory is.")
      .def_property_readonly("_cdata", [](Self s) {
        return reinterpret_cast<uintptr_t>(s.get());
      });
  as_module(module).def("_crc32", checksum);
  as_module(module).def("_set_tensor", set_from_tensor);
  as_module(module).def("_set_storage",
                        [](const TensorBase& t,
                           Self s,
                           int64_t offset,
                           py::handle size,
                           py::handle stride) {
                          derived::check_writable(t);
                          set_storage(t,
                                      s,
                                      offset,
                                      to_ints(size.ptr(), "set_"),
                                      to_ints(stride.ptr(), "set_"));
                        });
}

}  // namespace taeda::python
