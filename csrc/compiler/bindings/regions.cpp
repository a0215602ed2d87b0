#include <taeda/csrc/compiler/bindings/compiled.h>
#include <taeda/csrc/compiler/bindings/regions.h>
#include <taeda/csrc/compiler/loops/checked_region.h>
#include <taeda/csrc/compiler/loops/print_cuda.h>
#include <taeda/csrc/compiler/loops/region.h>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tuple>

namespace taeda::compiler {

namespace {

namespace py = pybind11;
using loops::LoopRegion;

struct RegionObject {
  IntrusivePtr<LoopRegion> region;
};

// dtype, sizes and strides of a tensor; of expressions what the trace has seen.
using Look =
    std::tuple<std::string, std::vector<int64_t>, std::vector<int64_t>>;

std::vector<Look> looks_of(const Graph& body, const std::vector<ValueId>& ids) {
  std::vector<Look> looks;
  for (ValueId id : ids) {
    const Value& v = body[id];
    Look look{std::string(dtype_name(v.dtype)), {}, {}};
    for (size_t d = 0; d < v.sizes.size(); ++d) {
      std::get<1>(look).push_back(hint(v.sizes[d]));
      std::get<2>(look).push_back(hint(v.strides[d]));
    }
    looks.push_back(std::move(look));
  }
  return looks;
}

// What the calls give, one by one, for tensors of the sizes that the trace has
// seen.
py::list run(const RegionObject& self, const py::list& tensors) {
  std::vector<TensorBase> inputs;
  for (py::handle t : tensors) inputs.push_back(python::unwrap(t.ptr()));
  std::vector<int64_t> symbols;
  for (const SymInt& s : self.region->body.symbols) symbols.push_back(hint(s));
  Executor calls(self.region->body);
  std::vector<TensorBase> results =
      calls.run(std::move(inputs), symbols, /*in_place=*/false);
  py::list made;
  for (TensorBase& t : results) {
    made.append(py::reinterpret_steal<py::object>(bridge().wrap(std::move(t))));
  }
  return made;
}

py::dict to_dict(const loops::CudaCode& code) {
  py::list launches;
  for (const loops::CudaLaunch& launch : code.launches) {
    launches.append(py::dict(
        py::arg("kernel") = launch.kernel,
        py::arg("grid") = std::make_tuple(launch.blocks, launch.splits),
        py::arg("block") = launch.threads,
        py::arg("shared_bytes") = launch.shared_bytes));
  }
  return py::dict(py::arg("text") = loops::cuda_prelude() + code.text,
                  py::arg("alignment") = code.alignment,
                  py::arg("scratch_bytes") = code.scratch_bytes,
                  py::arg("launches") = launches);
}

py::list cuda(const RegionObject& self,
              const std::string& name,
              int64_t processors) {
  loops::CudaDevice device;
  device.processors = processors;
  py::list codes;
  const loops::Program& program = self.region->program();
  for (const auto& code : loops::cuda_codes(program, device, name)) {
    codes.append(to_dict(code));
  }
  return codes;
}

}  // namespace

PyObject* new_regions(const Graph& forward, const Graph* backward) {
  py::list found;
  for (const Graph* graph : {&forward, backward}) {
    if (graph == nullptr) continue;
    for (const Node& node : graph->nodes) {
      if (!node.region) continue;
      Region* region = node.region.get();
      auto* checked = dynamic_cast<loops::CheckedRegion*>(region);
      auto* kernel = checked != nullptr ? checked->kernel().get()
                                        : static_cast<LoopRegion*>(region);
      found.append(
          py::cast(RegionObject{IntrusivePtr<LoopRegion>::share(kernel)}));
    }
  }
  return found.release().ptr();
}

void add_region_type(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  py::class_<RegionObject>(m, "Region", "Calls that one kernel computes.")
      .def_property_readonly(
          "calls",
          [](const RegionObject& r) { return text_of(r.region->body); },
          "Text of the calls as a graph.")
      .def_property_readonly(
          "loops",
          [](const RegionObject& r) { return text_of(r.region->program()); },
          "Text of the loop program.")
      .def_property_readonly(
          "code",
          [](const RegionObject& r) { return r.region->unit().text(); },
          "C++ text of all kernels that are compiled with it.")
      .def_property_readonly(
          "ready",
          [](const RegionObject& r) { return r.region->unit().ready(); },
          "Whether the kernel is there; until then, and where its text did "
          "not compile, the calls run.")
      .def_property_readonly(
          "inputs",
          [](const RegionObject& r) {
            return looks_of(r.region->body, r.region->body.inputs);
          },
          "(dtype, sizes, strides) of each input, as the trace has seen it.")
      .def_property_readonly(
          "outputs",
          [](const RegionObject& r) {
            return looks_of(r.region->body, r.region->body.outputs);
          },
          "(dtype, sizes, strides) of each output, as the trace has seen it.")
      .def_property_readonly(
          "buffers",
          [](const RegionObject& r) { return r.region->from(); },
          "Which input each buffer of the kernel is, or from the inputs' "
          "count on which output.")
      .def("run", &run, py::arg("inputs"), "Results of the calls, one by one.")
      .def("cuda",
           &cuda,
           py::arg("name") = "region",
           py::arg("processors") = 132,
           "The kernel for CUDA: a list of texts with their launches, the "
           "fastest first; each wants memory of some alignment. Loops over "
           "symbols have none.");
}

}  // namespace taeda::compiler
