#include <taeda/c10/cuda/cusolver.h>

#include <dlfcn.h>

#include <array>
#include <string>

namespace taeda::cuda {

namespace {

constexpr LibraryNames kNames{
    "TAEDA_CUDA_CUSOLVER",
    "libcusolver.so",
    "nvidia-cusolver (of CUDA 12: nvidia-cusolver-cu12)",
    nullptr,
    1};

// Of the types in the order of kTypes.
template <class F>
void find_typed(void* library,
                const char* real,
                const char* complex,
                std::array<F, 4>* found,
                std::string* error) {
  const std::array<std::string, 4> names{str_cat("cusolverDnS", real),
                                         str_cat("cusolverDnD", real),
                                         str_cat("cusolverDnC", complex),
                                         str_cat("cusolverDnZ", complex)};
  for (size_t i = 0; i < names.size(); ++i) {
    (*found)[i] = reinterpret_cast<F>(dlsym(library, names[i].c_str()));
    if ((*found)[i] == nullptr) {
      *error = str_cat("cuSOLVER is too old: it has no ", names[i]);
    }
  }
}

Cusolver load() {
  Cusolver made{};
  void* library = open_nvidia_library(kNames, &made.error);
  if (library == nullptr) return made;
#define TAEDA_FIND(symbol, name, parameters)                    \
  made.name = reinterpret_cast<cusolver::Status(*) parameters>( \
      dlsym(library, #symbol));
#define TAEDA_FIND_ALWAYS(symbol, name, parameters)         \
  TAEDA_FIND(symbol, name, parameters)                      \
  if (made.name == nullptr) {                               \
    made.error = "cuSOLVER is too old: it has no " #symbol; \
  }
#define TAEDA_FIND_TYPED(real, complex, name, parameters) \
  find_typed(library, #real, #complex, &made.name, &made.error);
  TAEDA_CUSOLVER_FUNCTIONS(TAEDA_FIND_ALWAYS)
  TAEDA_CUSOLVER_NEWER_FUNCTIONS(TAEDA_FIND)
  TAEDA_CUSOLVER_TYPED_FUNCTIONS(TAEDA_FIND_TYPED)
#undef TAEDA_FIND_TYPED
#undef TAEDA_FIND_ALWAYS
#undef TAEDA_FIND
  return made;
}

}  // namespace

const Cusolver& cusolver_library() {
  // Never destroyed: calls may run while the process ends.
  static const Cusolver& loaded = *new Cusolver(load());
  return loaded;
}

}  // namespace taeda::cuda
