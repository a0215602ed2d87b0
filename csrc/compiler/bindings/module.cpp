// The extension module taeda._compiler, loaded when something is compiled.
#include <taeda/csrc/compiler/bindings/compiled.h>
#include <taeda/csrc/compiler/bindings/passes.h>
#include <taeda/csrc/compiler/bindings/regions.h>
#include <taeda/csrc/compiler/loops/fuse.h>
#include <taeda/csrc/compiler/loops/toolchain.h>
#include <taeda/csrc/compiler/loops/unit.h>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace taeda::compiler {

namespace {

namespace py = pybind11;

void raise_difference(const std::string& text) {
  py::gil_scoped_acquire gil;
  python::Ref type = python::imported("taeda._dynamo.exc", "KernelDiffers");
  PyErr_SetString(type.get(), text.c_str());
  throw python::PythonError();
}

py::object compile_function(const py::object& function,
                            const py::object& on_failure,
                            const py::object& on_made,
                            bool recompute,
                            bool fuse,
                            bool blocking,
                            bool check,
                            bool emulate_precision_casts,
                            double budget,
                            const py::object& symbols,
                            std::vector<size_t> cleared,
                            bool passes) {
  CompileOptions options;
  if (fuse) {
    options.fuse = fuser({.blocking = blocking,
                          .emulate_precision_casts = emulate_precision_casts},
                         check);
    options.layouts = true;
  }
  options.partition.recompute = recompute;
  options.partition.budget = budget;
  PyObject* made = new_compiled(function.ptr(),
                                {python::Ref::borrow(on_failure.ptr()),
                                 python::Ref::borrow(on_made.ptr()),
                                 options,
                                 Signature(symbols.ptr()),
                                 std::move(cleared),
                                 passes});
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

}  // namespace

std::function<void(Graph& graph)> fuser(FuseOptions options, bool check) {
  if (check) options.check = raise_difference;
  return [options](Graph& graph) { fuse(graph, options); };
}

}  // namespace taeda::compiler

PYBIND11_MODULE(_compiler, m) {
  using namespace taeda::compiler;
  if (add_compiled_type(m.ptr()) == nullptr) {
    throw pybind11::error_already_set();
  }
  add_region_type(m.ptr());
  add_passes(m);
  // As in taeda._C: the kind of an error is its type in Python.
  pybind11::register_local_exception_translator([](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (...) {
      bridge().translate();
    }
  });
  m.def("compile",
        &compile_function,
        pybind11::arg("function"),
        pybind11::arg("on_failure"),
        pybind11::kw_only(),
        pybind11::arg("on_made") = pybind11::none(),
        pybind11::arg("recompute") = true,
        pybind11::arg("fuse") = true,
        pybind11::arg("blocking") = false,
        pybind11::arg("check") = false,
        pybind11::arg("emulate_precision_casts") = false,
        pybind11::arg("budget") = 1.0,
        pybind11::arg("symbols") = pybind11::none(),
        pybind11::arg("cleared") = std::vector<size_t>(),
        pybind11::arg("passes") = false,
        "A callable that runs a function of tensors, and of numbers where "
        "`symbols` says so, as compiled graphs.");
  m.def("opened_kernels",
        &loops::opened_kernels,
        "Paths of the cached kernels that this process has loaded.");
  m.def("configure_cache",
        &loops::configure_cache,
        pybind11::arg("used"),
        pybind11::arg("tag"),
        "Whether kernels are cached in files, and text in their names.");
  m.def("kernel_folder",
        &loops::cache_folder,
        "The folder of cached kernels; None where there can be none.");
  m.def("is_whole_kernel",
        &loops::check_cached,
        pybind11::arg("path"),
        "Whether a cached kernel is there, undamaged and this user's.");
}
