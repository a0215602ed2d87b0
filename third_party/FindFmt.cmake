# fmt::fmt-header-only, from the PyPI package cmeel-fmt or the system.
include(FindPackageHandleStandardArgs)
include(PythonPackage)
taeda_python_roots(_roots)
find_path(Fmt_INCLUDE_DIR fmt/format.h HINTS ${_roots} PATH_SUFFIXES include)
find_package_handle_standard_args(Fmt
  REQUIRED_VARS Fmt_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "pip install cmeel-fmt")
if(Fmt_FOUND AND NOT TARGET fmt::fmt-header-only)
  taeda_headers(_headers "${Fmt_INCLUDE_DIR}" fmt)
  add_library(fmt::fmt-header-only INTERFACE IMPORTED)
  target_include_directories(fmt::fmt-header-only SYSTEM INTERFACE "${_headers}")
  target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY)
endif()
