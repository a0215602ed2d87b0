// taeda.func's transforms: levels of the interceptor stack as contexts.
#include <taeda/csrc/python/init.h>

#include <taeda/csrc/functorch/batch_level.h>
#include <taeda/csrc/functorch/dual_level.h>
#include <taeda/csrc/functorch/grad_level.h>
#include <taeda/csrc/python/casters.h>

namespace taeda::python {

namespace {

using namespace functorch;
template <class T>
using LevelClass = py::class_<T, Shared<T>, Level>;

template <class T>
LevelClass<T> level_class(py::module_ m, const char* name, const char* doc) {
  auto* type = reinterpret_cast<PyObject*>(&PyType_Type);
  return {m, name, doc, py::module_local(), py::metaclass(type)};
}

void leave(const Shared<Level>& level, const py::args&) {
  size_t depth = 0;
  for (const LevelPtr& each : levels()) {
    if (each.get() == level.get()) return pop_levels(depth);
    ++depth;
  }
}

Randomness parse_randomness(std::string_view text) {
  if (text == "error") return Randomness::Error;
  if (text == "different") return Randomness::Different;
  if (text == "same") return Randomness::Same;
  throw_error(ErrorKind::Runtime,
              message("Only allowed values for randomness are 'error', "
                      "'different', or 'same'. Got {}",
                      text));
}

// (kind, depth, value) of a wrapper; None for a plain tensor. The depth of an
// ended level is -1.
py::object describe(const TensorBase& t) {
  const Wrapped* w = wrapped_or_null(t);
  if (w == nullptr) return py::none();
  int depth = -1, at = 0;
  for (const LevelPtr& each : levels()) {
    if (each.get() == w->level.get()) depth = at;
    ++at;
  }
  return py::make_tuple(w->level->kind(), depth, w->value);
}

// Made when a transform is used for the first time.
py::module_ make_module() {
  py::module_ m = py::reinterpret_borrow<py::module_>(
      py::module_::import("types").attr("ModuleType")("taeda._C._functorch"));
  new_class<Level>(m, "Level", "A transform that is in force inside `with`.")
      .def("__enter__",
           [](Shared<Level> self) {
             push_level(self);
             return self;
           })
      .def("__exit__", leave);
  level_class<GradLevel>(m, "GradLevel", "Reverse mode.")
      .def(py::init([] { return Shared(make_intrusive<GradLevel>()); }))
      .def("wrap", [](Shared<GradLevel> s, TensorBase t) { return s->wrap(t); })
      .def("unwrap",
           [](Shared<GradLevel> s, TensorBase t) { return s->unwrap(t); });
  level_class<BatchLevel>(m, "BatchLevel", "vmap over `size` elements.")
      .def(py::init([](int64_t size, std::string_view randomness) {
        return Shared(
            make_intrusive<BatchLevel>(size, parse_randomness(randomness)));
      }))
      .def("wrap",
           [](Shared<BatchLevel> s, TensorBase t, int64_t dim) {
             return s->wrap(t, dim);
           })
      .def("unwrap",
           [](Shared<BatchLevel> s, TensorBase t, int64_t dim) {
             return s->unwrap(t, dim);
           })
      .def("has_batch",
           [](Shared<BatchLevel> s, TensorBase t) { return s->has_batch(t); });
  level_class<DualLevel>(m, "DualLevel", "Forward mode.")
      .def(py::init([] { return Shared(make_intrusive<DualLevel>()); }))
      .def("make_dual",
           [](Shared<DualLevel> s, TensorBase primal, TensorBase tangent) {
             return s->make_dual(primal, tangent);
           })
      .def("primal",
           [](Shared<DualLevel> s, TensorBase t) { return s->primal(t); })
      .def("tangent", [](Shared<DualLevel> s, TensorBase t) -> py::object {
        TensorBase tangent = s->tangent(t);
        return tangent.defined() ? py::cast(tangent) : py::none();
      });
  m.def("loops", &BatchLevel::loops);
  m.def("describe", describe);
  return m;
}

}  // namespace

void bind_functorch(PyObject* module) {
  as_module(module).attr("_functorch") = make_module();
}

}  // namespace taeda::python
