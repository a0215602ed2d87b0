# All C++ tests in one binary; `tools/dev test` runs it.
find_package(GTest REQUIRED)
enable_testing()
file(GLOB_RECURSE _tests CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/test/cpp/*_test.cpp")
# Stores and groups are part of a Python module, so the tests have their own.
set(_distributed ${TAEDA_DISTRIBUTED_SOURCES})
list(FILTER _distributed EXCLUDE REGEX "/(bindings|gloo)/")
# Likewise what runs on GPUs, whose driver is the emulator's.
file(GLOB _cuda CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/c10/cuda/*.cpp")
file(GLOB _emulator CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/test/emulator/*.cpp")
add_library(emulated_cuda MODULE ${_emulator})
add_dependencies(emulated_cuda taeda_gen)
target_compile_definitions(emulated_cuda PRIVATE EMULATOR_VERSION=1
  EMULATOR_INCLUDE="${PROJECT_SOURCE_DIR}/test/python/cuda"
  EMULATOR_SOURCES="${PROJECT_SOURCE_DIR}/test/emulator")
set_target_properties(emulated_cuda PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/emulator/tests")
target_include_directories(emulated_cuda PRIVATE "${TAEDA_INCLUDE_DIR}")
target_link_libraries(emulated_cuda PRIVATE taeda taeda_flags ${CMAKE_DL_LIBS})
if(_tests)
  add_executable(taeda_tests
    ${_tests} ${_distributed} ${_cuda} $<TARGET_OBJECTS:taeda_compiler>)
  add_dependencies(taeda_tests emulated_cuda)
  foreach(_test memory backward)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/test/cpp/cuda/${_test}_test.cpp"
      APPEND PROPERTY COMPILE_DEFINITIONS EMULATED_CUDA="$<TARGET_FILE:emulated_cuda>")
  endforeach()
  add_dependencies(taeda_tests taeda_gen)
  target_link_libraries(taeda_tests PRIVATE
    taeda taeda_flags GTest::gtest GTest::gtest_main fmt::fmt-header-only
    ${CMAKE_DL_LIBS})
  set_target_properties(taeda_tests PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  add_test(NAME taeda_tests COMMAND taeda_tests)
endif()

# Accuracy of the scalar math: programs of their own, one per ISA level, since they
# depend on nothing but the headers and on how the compiler vectorises them.
file(GLOB_RECURSE _programs CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/test/cpp/accuracy_*.cpp")
if(NOT TAEDA_SANITIZE)
  foreach(_program IN LISTS _programs)
    cmake_path(GET _program STEM _stem)
    foreach(_isa IN LISTS TAEDA_ISA_LEVELS)
      set(_name ${_stem}_${_isa})
      add_executable(${_name} ${_program})
      add_dependencies(${_name} taeda_gen)
      target_include_directories(${_name} PRIVATE
        "${PROJECT_SOURCE_DIR}" "${TAEDA_INCLUDE_DIR}")
      target_compile_options(${_name} PRIVATE
        ${TAEDA_KERNEL_FLAGS} ${TAEDA_ISA_FLAGS_${_isa}})
      target_link_libraries(${_name} PRIVATE taeda_flags)
    endforeach()
  endforeach()
endif()
