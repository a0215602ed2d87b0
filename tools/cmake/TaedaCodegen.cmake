# Runs tools/codegen and sorts its outputs by folder:
#   gen/include/**        headers, included as <taeda/gen/...>
#   gen/kernels/*.cpp     once per ISA level        (TAEDA_GEN_KERNELS)
#   gen/**/python/**.cpp  extension module          (TAEDA_GEN_PYTHON)
#   other gen/**.cpp      libtaeda                  (TAEDA_GEN_SOURCES)
#   gen/python/taeda/**   .py and .pyi of the package
if(TAEDA_BUILD_PYTHON)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
else()
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
endif()

set(TAEDA_GEN_DIR "${PROJECT_BINARY_DIR}/gen")
set(_records_dir "${PROJECT_SOURCE_DIR}/aten/ops")
file(GLOB _records "${_records_dir}/*.yaml")
if(NOT _records OR NOT EXISTS "${PROJECT_SOURCE_DIR}/tools/codegen/main.py")
  message(WARNING "no records or no generator yet: nothing is generated")
  add_custom_target(taeda_gen)
  return()
endif()
file(GLOB_RECURSE _codegen_inputs CONFIGURE_DEPENDS
  "${_records_dir}/*.yaml"
  "${PROJECT_SOURCE_DIR}/tools/codegen/*.py"
  "${PROJECT_SOURCE_DIR}/tools/codegen/*.tmpl"
  "${PROJECT_SOURCE_DIR}/tools/codegen/stubs/*.pyi"
  "${PROJECT_SOURCE_DIR}/csrc/python/tensor_docs.yaml"
  # Tables of names, for the stubs of packages.
  "${PROJECT_SOURCE_DIR}/python/taeda/__init__.py"
  "${PROJECT_SOURCE_DIR}/python/taeda/_compat/table.py"
  "${PROJECT_SOURCE_DIR}/python/taeda/nn/__init__.py"
  "${PROJECT_SOURCE_DIR}/python/taeda/nn/functional/*.py"
  "${PROJECT_SOURCE_DIR}/python/taeda/nn/modules/__init__.py"
  "${PROJECT_SOURCE_DIR}/python/taeda/optim/__init__.py"
  "${PROJECT_SOURCE_DIR}/python/taeda/utils/data/__init__.py"
  # What device text includes.
  "${PROJECT_SOURCE_DIR}/aten/math/*.h"
  "${PROJECT_SOURCE_DIR}/aten/native/cuda/*.cuh"
  # The derivatives that records may name.
  "${PROJECT_SOURCE_DIR}/csrc/autograd/formulas*.h"
  "${PROJECT_SOURCE_DIR}/csrc/autograd/scalar_math.h")
set(_codegen "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/codegen/main.py"
  --records "${_records_dir}" --out "${TAEDA_GEN_DIR}")

# A record may add a header of its own, so the list is asked for again whenever a
# record or the generator changes.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_codegen_inputs})
execute_process(
  COMMAND ${_codegen} --list-outputs
  OUTPUT_VARIABLE _listed
  RESULT_VARIABLE _failed)
if(_failed)
  message(FATAL_ERROR "tools/codegen --list-outputs failed (see above)")
endif()
string(STRIP "${_listed}" _listed)
string(REPLACE "\n" ";" _listed "${_listed}")
set(TAEDA_GEN_OUTPUTS "")
foreach(_output IN LISTS _listed)
  # Headers by the path under which they are included, a link to gen/include: what is
  # compiled waits for them, and is compiled anew in the build that rewrites them.
  string(REGEX REPLACE "^include/" "../include/taeda/gen/" _output "${_output}")
  cmake_path(ABSOLUTE_PATH _output BASE_DIRECTORY "${TAEDA_GEN_DIR}" NORMALIZE)
  list(APPEND TAEDA_GEN_OUTPUTS "${_output}")
endforeach()
if(NOT TAEDA_GEN_OUTPUTS)
  message(FATAL_ERROR "tools/codegen --list-outputs printed nothing")
endif()

# Ninja's restat keeps rebuilds small: codegen leaves files whose content is equal.
add_custom_command(
  OUTPUT ${TAEDA_GEN_OUTPUTS}
  COMMAND ${_codegen}
  DEPENDS ${_codegen_inputs}
  COMMENT "Generating from the operator records"
  VERBATIM)
add_custom_target(taeda_gen DEPENDS ${TAEDA_GEN_OUTPUTS})

set(TAEDA_GEN_SOURCES ${TAEDA_GEN_OUTPUTS})
list(FILTER TAEDA_GEN_SOURCES INCLUDE REGEX "\\.cpp$")
set(TAEDA_GEN_KERNELS ${TAEDA_GEN_SOURCES})
list(FILTER TAEDA_GEN_KERNELS INCLUDE REGEX "/gen/kernels/[^/]*$")
set(TAEDA_GEN_PYTHON ${TAEDA_GEN_SOURCES})
list(FILTER TAEDA_GEN_PYTHON INCLUDE REGEX "/gen/(.*/)?python/")
list(FILTER TAEDA_GEN_SOURCES EXCLUDE REGEX "/gen/kernels/[^/]*$")
list(FILTER TAEDA_GEN_SOURCES EXCLUDE REGEX "/gen/(.*/)?python/")
