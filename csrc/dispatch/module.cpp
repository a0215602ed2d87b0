// The extension module taeda._dispatch, loaded with the first operator that is
// called boxed, transform, or mode or class of __torch_dispatch__.
#include <taeda/csrc/dispatch/module.h>

#include <taeda/csrc/python/lent.h>

PYBIND11_MODULE(_dispatch, m) {
  using namespace taeda::python;
  borrow_from_native();
  bind_library(m);
  bind_torch_dispatch(m);
  bind_levels(m);
}
