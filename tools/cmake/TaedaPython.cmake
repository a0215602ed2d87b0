# _C, the extension module: the only code that sees Python.
execute_process(
  COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
  OUTPUT_VARIABLE pybind11_DIR
  OUTPUT_STRIP_TRAILING_WHITESPACE)
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 3.1 CONFIG REQUIRED)
taeda_headers(_headers "${pybind11_INCLUDE_DIR}" pybind11)
set_target_properties(pybind11::headers PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${_headers}"
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_headers}")

if(TAEDA_PYTHON_SOURCES OR TAEDA_GEN_PYTHON)
  Python_add_library(_C MODULE WITH_SOABI
    ${TAEDA_PYTHON_SOURCES} ${TAEDA_GEN_PYTHON})
  add_dependencies(_C taeda_gen)
  target_link_libraries(_C PRIVATE
    taeda taeda_flags pybind11::headers fmt::fmt-header-only)
  taeda_precompile(_C
    <algorithm> <optional> <string> <string_view> <tuple> <utility> <vector>
    <taeda/csrc/python/arg_parser.h>
    <taeda/aten/core/dispatcher.h>
    <taeda/aten/core/op_types.h>)

  # By subject; sources that are not listed are compiled on their own.
  set(_batch_engine arg_error autocast autograd_engine return_types torch_function)
  set(_batch_values common symbolic)
  set(_batch_state numpy settings shared_memory state storage torch_dispatch)
  foreach(_batch engine values state)
    list(TRANSFORM _batch_${_batch} PREPEND csrc/python/)
    list(TRANSFORM _batch_${_batch} APPEND .cpp)
    taeda_batch(_C ${_batch} ${_batch_${_batch}})
  endforeach()
  set_target_properties(_C PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
    INSTALL_RPATH "$ORIGIN/lib")
endif()

# Bindings beside their features, loaded when these are first used. They have no
# symbols of _C, whose functions they get by a table (csrc/python/lent.h).
if(TARGET _C)
  add_library(taeda_lent OBJECT csrc/extension/lent.cpp)
  add_dependencies(taeda_lent taeda_gen)
  target_link_libraries(taeda_lent PRIVATE
    taeda taeda_flags pybind11::headers Python::Module)
  if(NOT TAEDA_SANITIZE)
    target_compile_options(taeda_lent PRIVATE -O1)
  endif()
  foreach(_module IN LISTS TAEDA_BINDINGS)
    Python_add_library(${_module} MODULE WITH_SOABI
      ${TAEDA_SOURCES${_module}} $<TARGET_OBJECTS:taeda_lent>)
    add_dependencies(${_module} taeda_gen)
    target_link_libraries(${_module} PRIVATE taeda taeda_flags pybind11::headers)
    set_target_properties(${_module} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
      INSTALL_RPATH "$ORIGIN/lib")
    # Calls of operators pass through _boxed alone. Options of single sources would
    # keep these out of batches.
    if(NOT _module STREQUAL "_boxed" AND NOT TAEDA_SANITIZE)
      target_compile_options(${_module} PRIVATE -O1)
    endif()
  endforeach()
  taeda_batch(_cuda bindings ${TAEDA_SOURCES_cuda})
  set(_levels csrc/boxed/levels.cpp csrc/boxed/torch_dispatch.cpp)
  set(_calls ${TAEDA_SOURCES_boxed})
  list(REMOVE_ITEM _calls ${_levels})
  taeda_batch(_boxed calls ${_calls})
  taeda_batch(_boxed levels ${_levels})
endif()

# _compiler: the graph compiler, which is loaded when something is compiled.
if(TAEDA_COMPILER_BINDINGS)
  Python_add_library(_compiler MODULE WITH_SOABI
    ${TAEDA_COMPILER_BINDINGS} $<TARGET_OBJECTS:taeda_compiler>)
  add_dependencies(_compiler taeda_gen)
  target_link_libraries(_compiler PRIVATE
    taeda taeda_flags pybind11::headers fmt::fmt-header-only)
  taeda_batch(_compiler bindings ${TAEDA_COMPILER_BINDINGS})
  set_target_properties(_compiler PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
    INSTALL_RPATH "$ORIGIN/lib")
endif()

# _distributed: stores and process groups, loaded by taeda.distributed. libtaeda_gloo is
# their way between hosts, opened when it is needed; a build without Gloo has none.
if(TAEDA_DISTRIBUTED_SOURCES)
  set(_gloo_sources ${TAEDA_DISTRIBUTED_SOURCES})
  list(FILTER _gloo_sources INCLUDE REGEX "/gloo/")
  list(FILTER TAEDA_DISTRIBUTED_SOURCES EXCLUDE REGEX "/gloo/")
  # Reductions are loops that the compiler vectorises.
  set_source_files_properties(csrc/distributed/reduce.cpp PROPERTIES
    COMPILE_OPTIONS "${TAEDA_KERNEL_FLAGS}" SKIP_PRECOMPILE_HEADERS ON)
  Python_add_library(_distributed MODULE WITH_SOABI ${TAEDA_DISTRIBUTED_SOURCES})
  add_dependencies(_distributed taeda_gen)
  target_link_libraries(_distributed PRIVATE
    taeda taeda_flags pybind11::headers ${CMAKE_DL_LIBS})
  # Its time goes into waiting and copying; reduce.cpp has flags of its own.
  if(NOT TAEDA_SANITIZE)
    target_compile_options(_distributed PRIVATE -O1)
  endif()
  set(_bindings ${TAEDA_DISTRIBUTED_SOURCES})
  list(FILTER _bindings INCLUDE REGEX "/bindings/")
  taeda_batch(_distributed bindings ${_bindings})
  taeda_precompile(_distributed ${TAEDA_COMMON_HEADERS})
  taeda_batches(_distributed csrc/distributed "[a-h]" "[i-p]" "[s-z]")
  taeda_batches(_distributed csrc/distributed/mpi "[a-z]")
  set_target_properties(_distributed PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
    INSTALL_RPATH "$ORIGIN/lib")
  find_package(Gloo)
  if(TAEDA_LIBRARY_TREE)
    # Another Python's modules take that tree's libraries.
  elseif(Gloo_FOUND)
    add_library(taeda_gloo MODULE ${_gloo_sources} csrc/distributed/call.cpp
      csrc/distributed/reduce.cpp csrc/distributed/store.cpp
      csrc/distributed/work.cpp)
    add_dependencies(taeda_gloo taeda_gen)
    target_link_libraries(taeda_gloo PRIVATE taeda taeda_flags Gloo::gloo)
    set_target_properties(taeda_gloo PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
      INSTALL_RPATH "$ORIGIN")
  else()
    message(STATUS "No Gloo (libgloo-dev): process groups on one host only")
  endif()
endif()

# _capture, which is loaded when something is compiled. It knows the interpreter's
# frames, so it is built for the versions whose frames it knows.
if(TAEDA_CAPTURE_SOURCES AND Python_VERSION VERSION_GREATER_EQUAL 3.11
   AND Python_VERSION VERSION_LESS 3.14)
  Python_add_library(_capture MODULE WITH_SOABI ${TAEDA_CAPTURE_SOURCES})
  add_dependencies(_capture taeda_gen)
  target_link_libraries(_capture PRIVATE taeda taeda_flags)
  # Its own header comes first: it defines what Python.h asks for.
  taeda_precompile(_capture <taeda/csrc/compiler/capture/capture.h>
    ${TAEDA_COMMON_HEADERS})
  taeda_batches(_capture csrc/compiler/capture "[ab]" "[op]")
  set_target_properties(_capture PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
    INSTALL_RPATH "$ORIGIN/lib")
endif()
