// NVIDIA's libraries besides the driver: opened when they are first wanted,
// from the packages of PyPI (`nvidia-*`) or the system's folders.
#pragma once

#include <string>
#include <vector>

namespace taeda::cuda {

struct LibraryNames {
  const char*
      variable;         // of the environment: a file, and nothing else is tried
  const char* stem;     // "libcublasLt.so"
  const char* package;  // that brings it: "nvidia-cublas"
  // The file's number, ".9"; null: that of the CUDA that the driver runs.
  const char* number = nullptr;
  int behind = 0;  // by how much its number is less than CUDA's
};

// Null where there is none, and a sentence that says what to install in
// `error`. Versions newer than the driver's CUDA are left out.
void* open_nvidia_library(const LibraryNames& names, std::string* error);

// Looks functions up in an opened library; one that is missing is named in
// `error`, unless the table may do without it.
struct FunctionFinder {
  void* library;
  const char* name;  // as users know it: "cuBLAS"
  std::string* error;

  template <class F>
  void find(const char* symbol, F* found) const {
    find_newer(symbol, found);
    if (*found == nullptr) say_missing(symbol);
  }
  template <class F>
  void find_newer(const char* symbol, F* found) const {
    *found = reinterpret_cast<F>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;
  void say_missing(const char* symbol) const;
};

// Where packages may have put libraries: beside this one, and what was added.
std::vector<std::string> library_folders();
// For the bindings, which know where Python keeps packages.
void add_library_folder(std::string folder);

}  // namespace taeda::cuda
