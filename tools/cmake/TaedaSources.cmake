# Globs the hand-written sources and lays out build/include/taeda.
file(GLOB_RECURSE TAEDA_SOURCES CONFIGURE_DEPENDS
  RELATIVE "${PROJECT_SOURCE_DIR}"
  "${PROJECT_SOURCE_DIR}/c10/*.cpp"
  "${PROJECT_SOURCE_DIR}/aten/*.cpp"
  "${PROJECT_SOURCE_DIR}/csrc/*.cpp")
list(FILTER TAEDA_SOURCES EXCLUDE REGEX "(^|/)cuda/")

set(TAEDA_PYTHON_SOURCES ${TAEDA_SOURCES})
list(FILTER TAEDA_PYTHON_SOURCES INCLUDE REGEX "^csrc/python/")
list(FILTER TAEDA_SOURCES EXCLUDE REGEX "^csrc/python/")
set(TAEDA_CAPTURE_SOURCES ${TAEDA_SOURCES})
list(FILTER TAEDA_CAPTURE_SOURCES INCLUDE REGEX "^csrc/compiler/capture/")
set(TAEDA_COMPILER_SOURCES ${TAEDA_SOURCES})
list(FILTER TAEDA_COMPILER_SOURCES INCLUDE REGEX "^csrc/compiler/(graph|loops|walk)/")
set(TAEDA_COMPILER_BINDINGS ${TAEDA_SOURCES})
list(FILTER TAEDA_COMPILER_BINDINGS INCLUDE REGEX "^csrc/compiler/bindings/")
list(FILTER TAEDA_SOURCES EXCLUDE REGEX "^csrc/compiler/")
set(TAEDA_DISTRIBUTED_SOURCES ${TAEDA_SOURCES})
list(FILTER TAEDA_DISTRIBUTED_SOURCES INCLUDE REGEX "^csrc/distributed/")
list(FILTER TAEDA_SOURCES EXCLUDE REGEX "^csrc/distributed/")

# An extension module of its own each: what it is for is its folder's.
set(TAEDA_BINDINGS _boxed _shapes _cuda _profiler _dlpack)
set(TAEDA_FOLDER_boxed csrc/boxed)
set(TAEDA_FOLDER_shapes csrc/symbolic)
set(TAEDA_FOLDER_cuda csrc/gpu)
set(TAEDA_FOLDER_dlpack csrc/dlpack)
set(TAEDA_FOLDER_profiler csrc/profiler/bindings)
foreach(_module IN LISTS TAEDA_BINDINGS)
  set(TAEDA_SOURCES${_module} ${TAEDA_SOURCES})
  list(FILTER TAEDA_SOURCES${_module} INCLUDE REGEX "^${TAEDA_FOLDER${_module}}/")
  list(FILTER TAEDA_SOURCES EXCLUDE REGEX "^${TAEDA_FOLDER${_module}}/")
endforeach()
list(FILTER TAEDA_SOURCES EXCLUDE REGEX "^csrc/extension/")

file(GLOB TAEDA_PLUGINS CONFIGURE_DEPENDS
  RELATIVE "${PROJECT_SOURCE_DIR}"
  "${PROJECT_SOURCE_DIR}/aten/native/*/CMakeLists.txt")
list(TRANSFORM TAEDA_PLUGINS REPLACE "/CMakeLists.txt$" "")
list(FILTER TAEDA_SOURCES EXCLUDE REGEX "/plugin/")

set(TAEDA_KERNELS ${TAEDA_SOURCES})
list(FILTER TAEDA_KERNELS INCLUDE REGEX "^aten/native/cpu/kernels/[^/]*$")
list(FILTER TAEDA_SOURCES EXCLUDE REGEX "^aten/native/cpu/kernels/[^/]*$")

# *.avx2.cpp and *.avx512.cpp join the objects of their level, or are left out where
# that level is not built.
foreach(_isa avx2 avx512)
  set(TAEDA_SOURCES_${_isa} ${TAEDA_SOURCES})
  list(FILTER TAEDA_SOURCES_${_isa} INCLUDE REGEX "\\.${_isa}\\.cpp$")
  list(FILTER TAEDA_SOURCES EXCLUDE REGEX "\\.${_isa}\\.cpp$")
endforeach()

# The same for a plugin's own list of sources, by name of the variable.
function(taeda_isa_sources variable)
  foreach(_isa avx2 avx512)
    set(_files ${${variable}})
    list(FILTER _files INCLUDE REGEX "\\.${_isa}\\.cpp$")
    if(NOT _isa IN_LIST TAEDA_ISA_LEVELS)
      list(FILTER ${variable} EXCLUDE REGEX "\\.${_isa}\\.cpp$")
    elseif(_files)
      set_source_files_properties(${_files} PROPERTIES COMPILE_OPTIONS
        "${TAEDA_KERNEL_FLAGS};${TAEDA_ISA_FLAGS_${_isa}}")
    endif()
  endforeach()
  set(${variable} "${${variable}}" PARENT_SCOPE)
endfunction()

# <taeda/c10/...> in the tree reads as it does installed.
set(TAEDA_INCLUDE_DIR "${PROJECT_BINARY_DIR}/include")
set(_root "${TAEDA_INCLUDE_DIR}/taeda")
file(MAKE_DIRECTORY "${_root}" "${TAEDA_GEN_DIR}/include")
foreach(_layer c10 aten csrc)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${_layer}" "${_root}/${_layer}" SYMBOLIC)
endforeach()
file(CREATE_LINK "${TAEDA_GEN_DIR}/include" "${_root}/gen" SYMBOLIC)
# The headers of the C++ front end stand at the root: <taeda/taeda.h>.
file(GLOB _front CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/csrc/api/include/*.h")
foreach(_header IN LISTS _front)
  cmake_path(GET _header FILENAME _name)
  file(CREATE_LINK "${_header}" "${_root}/${_name}" SYMBOLIC)
endforeach()
set(TAEDA_FRONT_HEADERS ${_front})
