// Opening the libraries that are loaded on first use.
#pragma once

#include <taeda/c10/util/macros.h>

namespace taeda::blas {

// Opens `file` from the folder that holds this library, else from where the
// system looks; never into the global scope. Raises RuntimeError naming the
// file and `purpose` ("matrix products ...") where it cannot.
TAEDA_API void* load_library(const char* file, const char* purpose);

// The address of `symbol`, or null.
void* find_symbol(void* library, const char* symbol);

}  // namespace taeda::blas
