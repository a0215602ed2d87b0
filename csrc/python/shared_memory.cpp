// Storages in memory that other processes can map; the methods that use them
// are in taeda/_io/shared.py.
#include <taeda/c10/core/shared_memory.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

namespace taeda::python {

namespace {
using SharedStorage = Shared<StorageImpl>;

SharedKind kind_of(bool by_name) {
  return by_name ? SharedKind::Name : SharedKind::Descriptor;
}

// None, or (how it is found, its descriptor, its name).
py::object describe(const SharedStorage& storage) {
  auto memory = shared_memory_of(*storage);
  if (!memory) return py::none();
  static constexpr const char* kNames[] = {"descriptor", "name", "file"};
  return py::make_tuple(
      kNames[static_cast<int>(memory->kind)], memory->descriptor, memory->name);
}
}  // namespace

void bind_shared_memory(PyObject* module) {
  using Self = const SharedStorage&;
  as_module(module)
      .def("_shared_memory_of", describe)
      .def("_share_memory",
           [](Self s, bool by_name) { share_memory(*s, kind_of(by_name)); })
      .def("_new_shared_storage",
           [](size_t nbytes, bool by_name) {
             return SharedStorage(new_shared_storage(nbytes, kind_of(by_name)));
           })
      .def("_open_shared_descriptor",
           [](int fd, size_t nbytes) {
             return SharedStorage(open_shared_descriptor(fd, nbytes));
           })
      .def("_open_shared_name",
           [](const std::string& name, size_t nbytes) {
             return SharedStorage(open_shared_name(name, nbytes));
           })
      .def("_retain_shared_name", [](Self s) { retain_shared_name(*s); })
      .def("_release_shared_name", [](Self s) { release_shared_name(*s); })
      .def("_map_file",
           [](const std::string& path, bool shared, size_t nbytes) {
             return SharedStorage(map_file(path, shared, nbytes));
           })
      .def("_map_descriptor", [](int fd, size_t nbytes) {
        return SharedStorage(map_descriptor(fd, nbytes));
      });
}

}  // namespace taeda::python
