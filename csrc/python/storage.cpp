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

// A number of bytes, or a sequence of their values.
SharedStorage make_storage(py::object given, std::optional<Device> device) {
  Device place = device.value_or(Device());
  if (PyLong_Check(given.ptr())) {
    int64_t n = to_int(given.ptr());
    TAEDA_CHECK(n >= 0, "UntypedStorage: negative size ", n);
    return make_empty(static_cast<size_t>(n), place);
  }
  Py_ssize_t n = PySequence_Size(given.ptr());
  check_status(static_cast<int>(std::min<Py_ssize_t>(n, 0)));
  SharedStorage out = make_empty(static_cast<size_t>(n), place);
  auto* bytes = static_cast<uint8_t*>(out->mutable_data());
  for (Py_ssize_t i = 0; i < n; ++i) {
    Ref item = checked(PySequence_GetItem(given.ptr(), i));
    bytes[i] = static_cast<uint8_t>(to_int(item.get()));
  }
  return out;
}

// Bytes ----------------------------------------------------------------------

// All of them as a tensor, wherever they lie.
TensorBase bytes_of(const SharedStorage& s) {
  auto impl = make_intrusive<TensorImpl>(
      Storage(s), kByte, backend_key(s->device().type));
  impl->set_sizes_contiguous({static_cast<int64_t>(s->nbytes())});
  return TensorBase(std::move(impl));
}

TensorBase byte_at(const SharedStorage& s, int64_t i) {
  auto n = static_cast<int64_t>(s->nbytes());
  TAEDA_CHECK_AS(Index,
                 i >= -n && i < n,
                 message("index {} out of range for storage of size {}", i, n));
  return make_view(bytes_of(s), {}, {}, i < 0 ? i + n : i);
}

uint8_t read_byte(const SharedStorage& s, int64_t i) {
  return *on_cpu(byte_at(s, i)).const_data<uint8_t>();
}

// A slice shares memory with the whole, which it keeps alive.
SharedStorage slice_of(const SharedStorage& whole, const py::slice& slice) {
  Py_ssize_t start, stop, step, n;
  if (!slice.compute(
          static_cast<Py_ssize_t>(whole->nbytes()), &start, &stop, &step, &n)) {
    throw py::error_already_set();
  }
  TAEDA_CHECK(step == 1, "slices of storages must have step 1, got ", step);
  auto release = [](void* context, size_t) {
    static_cast<StorageImpl*>(context)->release();
  };
  show_memory(*whole);
  char* data = static_cast<char*>(whole->mutable_data()) + start;
  void* kept = SharedStorage(whole).detach();
  return make_intrusive<StorageImpl>(
      DataPtr{data, kept, release}, static_cast<size_t>(n), whole->device());
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

py::object deepcopy(const SharedStorage& s, const py::dict& memo) {
  py::int_ key(reinterpret_cast<uintptr_t>(s.get()));
  if (!memo.contains(key)) memo[key] = clone(s);
  return memo[key];
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

py::list tolist(const SharedStorage& s) {
  TensorBase here = on_cpu(bytes_of(s));
  const auto* bytes = here.const_data<uint8_t>();
  return py::cast(std::vector<uint8_t>(bytes, bytes + s->nbytes()));
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

void add_attributes(py::class_<StorageImpl, SharedStorage>& c) {
  using Self = const SharedStorage&;
  c.def_property_readonly(
       "device", [](Self s) { return s->device(); }, "Where the memory is.")
      .def_property_readonly(
          "is_cuda",
          [](Self s) { return s->device().is_cuda(); },
          "Whether the memory is a GPU's.");
  for (const char* name : {"is_hpu", "is_sparse"}) {
    c.def_property_readonly(
        name, [](Self) { return false; }, "False: no such memory here.");
  }
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
  auto address = [](Self s) { return reinterpret_cast<uintptr_t>(s.get()); };
  auto same = [](py::object s) { return s; };
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
      .def("element_size", [](Self) { return 1; })
      .def("resizable", [](Self s) { return s->resizable(); })
      .def("get_device", [](Self s) { return int{s->device().index}; })
      .def("_use_count", [](Self s) { return s->use_count(); })
      .def("tolist", tolist, "Its bytes as a list of ints.")
      .def("resize_", resize, "Changes the length, keeping what fits.")
      .def("fill_", fill, "Sets every byte.")
      .def("copy_",
           copy_from,
           "Copies another storage's bytes.",
           py::arg("source"),
           py::arg("non_blocking") = false)
      .def("clone", clone, "A copy.")
      .def("cpu", same)
      .def("untyped", same)
      .def("__copy__", clone)
      .def("__deepcopy__", deepcopy)
      .def(
          "__sizeof__",
          [](Self s) { return sizeof(py::detail::instance) + s->nbytes(); },
          "Bytes of memory, its data included.")
      .def("__getitem__", slice_of)
      .def("__getitem__",
           [](Self s, py::handle i) { return read_byte(s, to_int(i.ptr())); })
      .def("__setitem__",
           [](Self s, const py::slice& part, int64_t byte) {
             fill(slice_of(s, part), byte);
           })
      .def("__setitem__",
           [](Self s, py::handle i, int64_t byte) {
             fill_with(byte_at(s, to_int(i.ptr())), byte & 0xff);
           })
      .def_property_readonly("_cdata", address);
  add_attributes(c);
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
