// Recorded work of GPUs.
#include <taeda/c10/core/gpu_parts.h>
#include <taeda/csrc/gpu/bind.h>
#include <taeda/csrc/python/values.h>

namespace taeda::python {

namespace {

// Owned by its Python object.
class GpuGraph {
 public:
  explicit GpuGraph(bool keep_graph)
      : graph_(gpu().graphs().make(keep_graph)) {}
  ~GpuGraph() { gpu().graphs().destroy(graph_); }
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;
  void* get() const { return graph_; }

 private:
  void* graph_;
};

}  // namespace

void bind_graphs(py::module_& m) {
  m.def("is_capturing", [](int device, int64_t id) {
    return gpu().graphs().is_capturing({device, id});
  });
  py::class_<GpuGraph>(m, "Graph", "Recorded work", py::module_local())
      .def(py::init<bool>())
      .def("begin",
           [](const GpuGraph& g, PoolId pool, const std::string& mode) {
             gpu().graphs().begin(g.get(), pool, mode);
           })
      .def("end", [](const GpuGraph& g) { return gpu().graphs().end(g.get()); })
      .def("instantiate",
           [](const GpuGraph& g) { gpu().graphs().instantiate(g.get()); })
      .def(
          "replay",
          [](const GpuGraph& g) { gpu().graphs().replay(g.get()); },
          Release())
      .def("reset", [](const GpuGraph& g) { gpu().graphs().reset(g.get()); })
      .def("pool",
           [](const GpuGraph& g) { return gpu().graphs().pool(g.get()); })
      .def("add_generator",
           [](const GpuGraph& g, py::handle generator) {
             gpu().graphs().add_generator(g.get(),
                                          to_generator(generator.ptr()));
           })
      .def("dump",
           [](const GpuGraph& g, const std::string& path) {
             gpu().graphs().dump(g.get(), path);
           })
      .def("raw_graph",
           [](const GpuGraph& g) { return gpu().graphs().raw_graph(g.get()); })
      .def("raw_executable", [](const GpuGraph& g) {
        return gpu().graphs().raw_executable(g.get());
      });
}

}  // namespace taeda::python
