# OpenBLAS_LIBRARY, OpenBLAS_PREFIX: the shared library that is loaded at run time
# and what its symbols begin with. From the PyPI package scipy-openblas32, or with
# TAEDA_SYSTEM_BLAS from the system (Debian: libopenblas-dev). No headers: lapack.h
# declares the routines used. TAEDA_OPENBLAS_DIR, where given, is searched alone.
include(FindPackageHandleStandardArgs)
include(PythonPackage)
if(TAEDA_SYSTEM_BLAS)
  set(OpenBLAS_PREFIX "")
  find_library(OpenBLAS_LIBRARY NAMES libopenblas.so.0 openblas
    PATH_SUFFIXES openblas-pthread openblas-openmp openblas-serial)
  set(_hint "apt install libopenblas-dev")
else()
  set(OpenBLAS_PREFIX "scipy_")
  if(TAEDA_OPENBLAS_DIR)
    set(_roots "${TAEDA_OPENBLAS_DIR}")
  else()
    taeda_python_roots(_roots)
  endif()
  find_library(OpenBLAS_LIBRARY NAMES scipy_openblas
    HINTS ${_roots}
    PATH_SUFFIXES scipy_openblas32/lib lib
    NO_DEFAULT_PATH)
  set(_hint "pip install scipy-openblas32")
endif()
find_package_handle_standard_args(OpenBLAS
  REQUIRED_VARS OpenBLAS_LIBRARY
  REASON_FAILURE_MESSAGE "${_hint}")
