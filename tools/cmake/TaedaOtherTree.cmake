# The extension modules alone, for another Python: libtaeda, its headers and the
# generated sources are those of a finished build, which no Python has a part in.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(Fmt REQUIRED)

set(TAEDA_GEN_DIR "${TAEDA_LIBRARY_TREE}/gen")
file(GLOB TAEDA_GEN_PYTHON "${TAEDA_GEN_DIR}/python/*.cpp"
  "${TAEDA_GEN_DIR}/*/python/*.cpp")
add_custom_target(taeda_gen)
include(TaedaSources)

add_library(taeda SHARED IMPORTED)
set_target_properties(taeda PROPERTIES
  IMPORTED_LOCATION "${TAEDA_LIBRARY_TREE}/lib/libtaeda.so")
target_include_directories(taeda INTERFACE "${TAEDA_INCLUDE_DIR}")
target_compile_features(taeda INTERFACE cxx_std_20)
# The graph compiler's objects, which no Python has a part in either.
file(GLOB_RECURSE _objects "${TAEDA_LIBRARY_TREE}/CMakeFiles/taeda_compiler.dir/*.o")
add_library(taeda_compiler OBJECT IMPORTED)
set_target_properties(taeda_compiler PROPERTIES IMPORTED_OBJECTS "${_objects}")
# Beside the modules, as in any tree.
foreach(_part lib gen)
  file(CREATE_LINK "${TAEDA_LIBRARY_TREE}/${_part}" "${PROJECT_BINARY_DIR}/${_part}"
    SYMBOLIC)
endforeach()

include(TaedaPython)
