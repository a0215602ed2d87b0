# Gloo::gloo, from Debian's libgloo-dev. Not required: without it there is no way
# between hosts.
include(FindPackageHandleStandardArgs)
find_path(Gloo_INCLUDE_DIR gloo/context.h)
find_library(Gloo_LIBRARY gloo)
find_package_handle_standard_args(Gloo
  REQUIRED_VARS Gloo_LIBRARY Gloo_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "apt-get install libgloo-dev")
if(Gloo_FOUND AND NOT TARGET Gloo::gloo)
  add_library(Gloo::gloo UNKNOWN IMPORTED)
  set_target_properties(Gloo::gloo PROPERTIES
    IMPORTED_LOCATION "${Gloo_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Gloo_INCLUDE_DIR}")
endif()
