# The wheel's layout: taeda/_C, taeda/lib, taeda/include, taeda/share/cmake.
include(CMakePackageConfigHelpers)
set(_cmake_dir taeda/share/cmake/Taeda)

install(TARGETS taeda EXPORT TaedaTargets LIBRARY DESTINATION ${TAEDA_LIBDIR})
if(TARGET _C)
  install(TARGETS _C LIBRARY DESTINATION taeda)
endif()
foreach(_module _capture _compiler _distributed ${TAEDA_BINDINGS})
  if(TARGET ${_module})
    install(TARGETS ${_module} LIBRARY DESTINATION taeda)
  endif()
endforeach()
if(TARGET taeda_gloo)
  # Gloo itself stays the system's (libgloo0), as what it needs: hiredis and ibverbs.
  # Where it is missing a group between hosts says so.
  install(TARGETS taeda_gloo LIBRARY DESTINATION ${TAEDA_LIBDIR})
endif()
install(EXPORT TaedaTargets NAMESPACE Taeda:: DESTINATION ${_cmake_dir})
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/tools/cmake/TaedaConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/TaedaConfig.cmake"
  INSTALL_DESTINATION ${_cmake_dir})
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/TaedaConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(
  FILES
    "${PROJECT_BINARY_DIR}/TaedaConfig.cmake"
    "${PROJECT_BINARY_DIR}/TaedaConfigVersion.cmake"
  DESTINATION ${_cmake_dir})

foreach(_layer c10 aten csrc)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${_layer}"
    DESTINATION taeda/include/taeda
    FILES_MATCHING PATTERN "*.h"
    PATTERN "csrc/python" EXCLUDE
    PATTERN "csrc/compiler" EXCLUDE
    PATTERN "csrc/distributed" EXCLUDE
    PATTERN "csrc/boxed" EXCLUDE
    PATTERN "plugin" EXCLUDE)
endforeach()
install(FILES ${TAEDA_FRONT_HEADERS} DESTINATION taeda/include/taeda)
install(DIRECTORY "${TAEDA_GEN_DIR}/include/"
  DESTINATION taeda/include/taeda/gen
  FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${TAEDA_GEN_DIR}/python/taeda/"
  DESTINATION taeda OPTIONAL
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi")
