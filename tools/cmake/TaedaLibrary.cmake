# libtaeda.so, its kernels per ISA level, and the plugins.
find_package(Fmt REQUIRED)
find_package(Eigen REQUIRED)
find_package(Threads REQUIRED)

add_library(taeda SHARED)
add_library(Taeda::taeda ALIAS taeda)

# What every file of the library, and every plugin, compiles with.
add_library(taeda_private INTERFACE)
target_include_directories(taeda_private INTERFACE "${TAEDA_INCLUDE_DIR}")
if(TAEDA_ISA_LEVELS STREQUAL "default")
  target_compile_definitions(taeda_private INTERFACE TAEDA_BASELINE_ONLY)
endif()
foreach(_isa IN LISTS TAEDA_ISA_LEVELS)
  string(TOUPPER "${_isa}" _upper)
  target_compile_definitions(taeda_private INTERFACE TAEDA_HAVE_ISA_${_upper})
endforeach()
# See Note [Shared functions] in aten/math/prim.h.
target_compile_definitions(taeda_private INTERFACE TAEDA_MATH_LINKED)
set_source_files_properties("${PROJECT_SOURCE_DIR}/aten/math/shared.cpp"
  PROPERTIES COMPILE_OPTIONS "${TAEDA_KERNEL_FLAGS}" SKIP_PRECOMPILE_HEADERS ON)
target_link_libraries(taeda_private INTERFACE
  taeda_flags fmt::fmt-header-only Eigen3::Eigen Threads::Threads)
if(NOT TAEDA_PARALLEL_STD)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(taeda_private INTERFACE OpenMP::OpenMP_CXX)
endif()

# Several definitions of one inline function may reach the linker, one per level. It
# keeps the first, so baseline objects come first on the link line, and for that all
# objects come from object libraries (tools/lint/isa_symbols.py checks).
add_library(taeda_objects OBJECT ${TAEDA_SOURCES} ${TAEDA_GEN_SOURCES})
add_dependencies(taeda_objects taeda_gen)
target_link_libraries(taeda_objects PRIVATE taeda_private)
# Adapters are much code and little work: a quarter less time to compile, and the same
# instructions run (docs/design/build.md).
set(_adapters ${TAEDA_GEN_SOURCES})
list(FILTER _adapters INCLUDE REGEX "/gen/ops/boxing")
# Autograd's functions make and release tensors one after the other: passes over values
# and blocks find little there and take a quarter of the time.
set(_nodes ${TAEDA_GEN_SOURCES})
list(FILTER _nodes INCLUDE REGEX "/gen/autograd/")
if(NOT TAEDA_SANITIZE)
  set_source_files_properties(${_adapters} PROPERTIES COMPILE_OPTIONS -O1)
  set_source_files_properties(${_nodes} PROPERTIES COMPILE_OPTIONS
    "-fno-tree-pre;-fno-gcse;-fno-schedule-insns2;-fno-tree-vrp;-fno-ipa-icf;-fno-ipa-cp;-fno-code-hoisting;-fno-tree-dominator-opts;-fno-crossjumping")
endif()
taeda_precompile(taeda_objects ${TAEDA_COMMON_HEADERS}
  <taeda/aten/core/promotion.h>
  <taeda/aten/iter/output.h>
  <taeda/aten/iter/spec.h>)
include(TaedaBatches)
# What a plugin's CMakeLists.txt defines for libtaeda's own sources.
target_compile_definitions(taeda_objects PRIVATE
  $<TARGET_PROPERTY:taeda,COMPILE_DEFINITIONS>)
target_sources(taeda PRIVATE $<TARGET_OBJECTS:taeda_objects>)
foreach(_isa IN LISTS TAEDA_ISA_LEVELS)
  set(_sources ${TAEDA_KERNELS} ${TAEDA_GEN_KERNELS} ${TAEDA_SOURCES_${_isa}})
  if(_sources)
    add_library(kernels_${_isa} OBJECT ${_sources})
    add_dependencies(kernels_${_isa} taeda_gen)
    target_compile_definitions(kernels_${_isa} PRIVATE TAEDA_ISA=isa_${_isa})
    target_compile_options(kernels_${_isa} PRIVATE
      ${TAEDA_KERNEL_FLAGS} ${TAEDA_ISA_FLAGS_${_isa}})
    target_link_libraries(kernels_${_isa} PRIVATE taeda_private)
    target_sources(taeda PRIVATE $<TARGET_OBJECTS:kernels_${_isa}>)
  endif()
endforeach()

target_include_directories(taeda INTERFACE
  $<BUILD_INTERFACE:${TAEDA_INCLUDE_DIR}>
  $<INSTALL_INTERFACE:taeda/include>)
target_compile_features(taeda INTERFACE cxx_std_20)
target_link_libraries(taeda
  PRIVATE $<BUILD_INTERFACE:taeda_private> ${CMAKE_DL_LIBS})
# Bound within the library: calls between our own exported functions skip the PLT.
target_link_options(taeda PRIVATE -Wl,-Bsymbolic-functions)
if(NOT TAEDA_SANITIZE)
  target_link_options(taeda PRIVATE -Wl,--no-undefined)
endif()
# What is loaded is what is installed: the names of internal functions lie in a file
# beside it, where debuggers, perf and valgrind find them.
if(CMAKE_OBJCOPY AND NOT TAEDA_SANITIZE)
  add_custom_command(TARGET taeda POST_BUILD VERBATIM
    COMMAND ${CMAKE_OBJCOPY} --only-keep-debug
      $<TARGET_FILE:taeda> $<TARGET_FILE:taeda>.debug
    COMMAND ${CMAKE_OBJCOPY} --strip-unneeded
      --add-gnu-debuglink=$<TARGET_FILE:taeda>.debug $<TARGET_FILE:taeda>)
endif()

# The graph compiler without its bindings: part of _compiler and of the C++ tests.
if(TAEDA_COMPILER_SOURCES)
  add_library(taeda_compiler OBJECT ${TAEDA_COMPILER_SOURCES})
  add_dependencies(taeda_compiler taeda_gen)
  target_link_libraries(taeda_compiler PRIVATE
    taeda taeda_flags fmt::fmt-header-only)
  taeda_precompile(taeda_compiler ${TAEDA_COMMON_HEADERS})
  taeda_batches(taeda_compiler csrc/compiler/graph
    "[a-d]" "[e-k]" "[lmo]" "p" "[rs]" "t")
  taeda_batches(taeda_compiler csrc/compiler/loops "c" "p" "[g-r]" "s")
  taeda_batches(taeda_compiler csrc/compiler/walk "[nsw]")
endif()

foreach(_plugin IN LISTS TAEDA_PLUGINS)
  add_subdirectory("${PROJECT_SOURCE_DIR}/${_plugin}" "${_plugin}")
endforeach()
