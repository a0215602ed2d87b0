# Compiler, linker and sanitizer settings shared by every target.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# The build tree has the wheel's layout (_C beside lib/), so one rpath serves both
# and nothing is relinked at install.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_CURRENT_LIST_DIR}/cached_compile.sh" "${CCACHE_PROGRAM}")
  endif()
endif()

add_library(taeda_flags INTERFACE)
target_compile_options(taeda_flags INTERFACE -Wall -Wextra -Wno-unused-parameter)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Without it, inline statics are bound once per process by name, and then two
  # libraries that instantiate the same template share them (we live beside others).
  target_compile_options(taeda_flags INTERFACE -fno-gnu-unique)
endif()
target_compile_definitions(taeda_flags INTERFACE
  TAEDA_VERSION="${PROJECT_VERSION}"
  $<$<BOOL:${TAEDA_PARALLEL_STD}>:TAEDA_PARALLEL_STD>)
target_link_options(taeda_flags INTERFACE
  -Wl,--as-needed -Wl,-O1 -Wl,--hash-style=gnu)
find_program(LLD_PROGRAM ld.lld)
if(LLD_PROGRAM)
  target_link_options(taeda_flags INTERFACE -fuse-ld=lld)
endif()

# Sanitizers: baseline ISA only, since instrumented AVX-512 loops take minutes to
# compile. libgomp is not instrumented, hence std::thread under thread sanitizer.
set(TAEDA_ISA_LEVELS default)
if(TAEDA_SANITIZE)
  set(_kinds_address "address,undefined")
  set(_kinds_thread "thread")
  set(_kinds "${_kinds_${TAEDA_SANITIZE}}")
  if(NOT _kinds)
    message(FATAL_ERROR "TAEDA_SANITIZE: expected address or thread, "
                        "got '${TAEDA_SANITIZE}'")
  endif()
  if(TAEDA_SANITIZE STREQUAL "thread")
    set(TAEDA_PARALLEL_STD ON)
    target_compile_definitions(taeda_flags INTERFACE TAEDA_PARALLEL_STD)
  endif()
  # Checks of memory and of undefined behaviour need no optimiser (it may even take a
  # faulty access away), and without it they compile in a third of the time. Data
  # races want the interleavings of code that is not slowed down tenfold.
  set(_optimised_address "-O0")
  set(_optimised_thread "-O1")
  set(CMAKE_CXX_FLAGS_RELEASE "${_optimised_${TAEDA_SANITIZE}} -g1")
  target_compile_options(taeda_flags INTERFACE
    -fsanitize=${_kinds} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(taeda_flags INTERFACE -fsanitize=${_kinds})
  target_compile_definitions(taeda_flags INTERFACE TAEDA_SANITIZED)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND TAEDA_ISA_LEVELS avx2 avx512)
endif()

# Processors without AVX2 are rare: their copy of the kernels is kept small.
if(TAEDA_SANITIZE)
  set(TAEDA_ISA_FLAGS_default "")
else()
  set(TAEDA_ISA_FLAGS_default -O2 -ftree-vectorize)
endif()
set(TAEDA_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(TAEDA_ISA_FLAGS_avx512
  -mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma -mf16c
  -mprefer-vector-width=512)

# Reading headers was a sixth of the build's CPU time (docs/design/build.md). The
# sanitizers build without, which shows that each source includes what it uses.
option(TAEDA_PRECOMPILE "Precompiled headers" ON)
# Headers that nine of ten sources read, and that take longest to read.
set(TAEDA_COMMON_HEADERS
  <algorithm> <array> <cmath> <functional> <limits> <memory> <mutex> <numeric>
  <optional> <string> <string_view> <tuple> <unordered_map> <utility> <variant>
  <vector>
  <taeda/aten/core/dispatcher.h>
  <taeda/aten/core/ivalue.h>)
function(taeda_precompile target)
  if(NOT TAEDA_PRECOMPILE OR TAEDA_SANITIZE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ccache hashes the preprocessed source, which then names the header's file.
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# pybind11 alone costs every source that includes it four seconds: it defines tables
# that bring its whole run time into each object. So sources that bind are compiled in
# batches: taeda_batch(TARGET BATCH SOURCE...).
function(taeda_batch target batch)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${batch})
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# Every source costs a third of a second before its first line is read, and as much
# again for templates and inline functions that its neighbours compile as well. So what
# lies in one folder is compiled in batches too: taeda_batches(TARGET FOLDER PATTERN...)
# makes one of the sources whose names begin with a pattern. A new source joins the
# batch of its name, and no other batch changes. Names in anonymous namespaces must
# differ within a batch. The sanitizers build without, as with precompiled headers.
function(taeda_batches target folder)
  if(NOT TAEDA_PRECOMPILE OR TAEDA_SANITIZE)
    return()
  endif()
  get_target_property(_sources ${target} SOURCES)
  foreach(_pattern IN LISTS ARGN)
    set(_batch ${_sources})
    list(FILTER _batch INCLUDE REGEX "(^|/)${folder}/(${_pattern})[^/]*\\.cpp$")
    if(_batch)
      list(REMOVE_ITEM _sources ${_batch})
      string(MAKE_C_IDENTIFIER "${folder}_${_pattern}" _name)
      taeda_batch(${target} ${_name} ${_batch})
    endif()
  endforeach()
endfunction()

# g++ 12 vectorises the branch-free math only with the first two (architecture, idea
# 2). Integers wrap around, as PyTorch's do.
set(TAEDA_KERNEL_FLAGS -fno-math-errno -fno-trapping-math -fwrapv)
if(NOT TAEDA_SANITIZE)
  list(PREPEND TAEDA_KERNEL_FLAGS -O3)
endif()
