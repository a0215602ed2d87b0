#include <taeda/c10/cuda/cusolver.h>

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
void find_typed(const FunctionFinder& finder,
                const char* real,
                const char* complex,
                std::array<F, 4>* found) {
  const std::array<std::string, 4> names{str_cat("cusolverDnS", real),
                                         str_cat("cusolverDnD", real),
                                         str_cat("cusolverDnC", complex),
                                         str_cat("cusolverDnZ", complex)};
  for (size_t i = 0; i < names.size(); ++i) {
    finder.find(names[i].c_str(), &(*found)[i]);
  }
}

Cusolver load() {
  Cusolver made{};
  void* library = open_nvidia_library(kNames, &made.error);
  if (library == nullptr) return made;
  FunctionFinder finder{library, "cuSOLVER", &made.error};
#define TAEDA_FIND(symbol, name, parameters) finder.find(#symbol, &made.name);
#define TAEDA_FIND_NEWER(symbol, name, parameters) \
  finder.find_newer(#symbol, &made.name);
#define TAEDA_FIND_TYPED(real, complex, name, parameters) \
  find_typed(finder, #real, #complex, &made.name);
  TAEDA_CUSOLVER_FUNCTIONS(TAEDA_FIND)
  TAEDA_CUSOLVER_NEWER_FUNCTIONS(TAEDA_FIND_NEWER)
  TAEDA_CUSOLVER_TYPED_FUNCTIONS(TAEDA_FIND_TYPED)
#undef TAEDA_FIND_TYPED
#undef TAEDA_FIND_NEWER
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
