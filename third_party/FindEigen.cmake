# Eigen3::Eigen (headers), from the PyPI package cmeel-eigen or the system.
include(FindPackageHandleStandardArgs)
include(PythonPackage)
taeda_python_roots(_roots)
find_path(Eigen_INCLUDE_DIR Eigen/Dense
  HINTS ${_roots}
  PATH_SUFFIXES include/eigen3)
find_package_handle_standard_args(Eigen
  REQUIRED_VARS Eigen_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "pip install cmeel-eigen")
if(Eigen_FOUND AND NOT TARGET Eigen3::Eigen)
  taeda_headers(_headers "${Eigen_INCLUDE_DIR}" eigen)
  add_library(Eigen3::Eigen INTERFACE IMPORTED)
  target_include_directories(Eigen3::Eigen SYSTEM INTERFACE "${_headers}")
  target_compile_definitions(Eigen3::Eigen INTERFACE EIGEN_MPL2_ONLY)
endif()
