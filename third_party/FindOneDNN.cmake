# DNNL::dnnl, from the PyPI packages onednn-cpu-gomp and onednn-devel-cpu-gomp, or
# with TAEDA_SYSTEM_BLAS from the system (Debian: libdnnl-dev). OneDNN_LIBRARY is
# the file. TAEDA_ONEDNN_DIR, where given, is a prefix searched alone.
include(FindPackageHandleStandardArgs)
include(PythonPackage)
if(TAEDA_SYSTEM_BLAS)
  find_path(OneDNN_INCLUDE_DIR dnnl.hpp)
  find_library(OneDNN_LIBRARY dnnl)
  set(_hint "apt install libdnnl-dev")
else()
  if(TAEDA_ONEDNN_DIR)
    set(_roots "${TAEDA_ONEDNN_DIR}")
  else()
    taeda_python_roots(_roots)
  endif()
  find_path(OneDNN_INCLUDE_DIR dnnl.hpp
    HINTS ${_roots} PATH_SUFFIXES include NO_DEFAULT_PATH)
  find_library(OneDNN_LIBRARY NAMES libdnnl.so.3 dnnl
    HINTS ${_roots} PATH_SUFFIXES lib NO_DEFAULT_PATH)
  set(_hint "pip install onednn-cpu-gomp onednn-devel-cpu-gomp")
endif()
find_package_handle_standard_args(OneDNN
  REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "${_hint}")
if(OneDNN_FOUND AND NOT TARGET DNNL::dnnl)
  taeda_headers(_headers "${OneDNN_INCLUDE_DIR}" onednn)
  add_library(DNNL::dnnl SHARED IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION "${OneDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${_headers}")
endif()
