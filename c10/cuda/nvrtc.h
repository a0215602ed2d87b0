// NVRTC, which makes device code of text, as a table of function pointers; the
// interface is that of NVIDIA's NVRTC documentation.
#pragma once

#include <taeda/c10/cuda/driver.h>

#include <string_view>

namespace taeda::cuda {

struct Header {
  const char* name;
  const char* text;
};

// Device code for `architecture` ("sm_90a"). RuntimeError with the compiler's
// log where it refuses the text, and saying what to install where there is no
// compiler.
std::string compile(const std::string& text,
                    const std::string& architecture,
                    const Header* headers,
                    size_t header_count);
// Of the compiler, as part of keys: "13.0".
const std::string& compiler_version();

}  // namespace taeda::cuda
