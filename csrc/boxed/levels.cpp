// taeda.func's transforms: levels of the interceptor stack as contexts.
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/boxed/module.h>
#include <taeda/csrc/functorch/batch_level.h>
#include <taeda/csrc/functorch/dual_level.h>
#include <taeda/csrc/functorch/functional_forms.h>
#include <taeda/csrc/functorch/functional_level.h>
#include <taeda/csrc/functorch/grad_level.h>

#include <memory>

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

std::string_view randomness_text(Randomness r) {
  constexpr std::string_view kTexts[] = {"error", "different", "same"};
  return kTexts[static_cast<size_t>(r)];
}

// 1 for the outermost level of the thread; -1 for one that has ended.
int depth_of(const Level* level) {
  int depth = 0;
  for (const LevelPtr& each : levels()) {
    ++depth;
    if (each.get() == level) return depth;
  }
  return -1;
}

// (kind, depth, batch dim or -1, value) of a wrapper; None for a plain tensor.
py::object describe(const TensorBase& t) {
  const Wrapped* w = wrapped_or_null(t);
  if (w == nullptr) return py::none();
  return py::make_tuple(w->level->kind(),
                        depth_of(w->level.get()),
                        w->batch_dim,
                        w->level->value_in(t));
}

py::object level_object(const LevelPtr& level) {
  Level* l = level.get();
  if (auto* g = dynamic_cast<GradLevel*>(l))
    return py::cast(Shared<GradLevel>(g));
  if (auto* b = dynamic_cast<BatchLevel*>(l)) {
    return py::cast(Shared<BatchLevel>(b));
  }
  if (auto* d = dynamic_cast<DualLevel*>(l))
    return py::cast(Shared<DualLevel>(d));
  if (auto* f = dynamic_cast<FunctionalLevel*>(l)) {
    return py::cast(Shared<FunctionalLevel>(f));
  }
  return py::cast(Shared<Level>(level));
}

// The names by which PyTorch's Python side asks about wrappers.
void add_queries(py::module_ m) {
  m.def("is_functorch_wrapped_tensor",
        [](const TensorBase& t) { return wrapped_or_null(t) != nullptr; });
  m.def("is_batchedtensor", [](const TensorBase& t) {
    return dynamic_cast<BatchLevel*>(level_of(t)) != nullptr;
  });
  m.def("is_gradtrackingtensor", [](const TensorBase& t) {
    return dynamic_cast<GradLevel*>(level_of(t)) != nullptr;
  });
  m.def("maybe_get_level", [](const TensorBase& t) {
    return wrapped_or_null(t) == nullptr ? -1 : depth_of(level_of(t));
  });
  m.def("maybe_get_bdim", [](const TensorBase& t) {
    const Wrapped* w = wrapped_or_null(t);
    return w == nullptr ? -1 : w->batch_dim;
  });
  m.def("get_unwrapped", [](const TensorBase& t) {
    const Wrapped* w = wrapped_or_null(t);
    TAEDA_CHECK(w != nullptr, "No wrappers present!");
    return w->level->value_in(t);
  });
}

py::object innermost() {
  return levels().empty() ? py::none() : level_object(levels().back());
}

// A context in which calls run as if a level, and those inside of it, did not
// exist.
struct Below {
  explicit Below(Shared<Level> l) : level(std::move(l)) {}
  void enter() {
    TAEDA_CHECK(level->is_alive() && !state, "the level has ended");
    state = std::make_unique<BelowLevel>(*level);
    auto* grad = dynamic_cast<GradLevel*>(level.get());
    if (grad != nullptr) set_grad_enabled(grad->outer_grad_mode());
  }
  void leave(const py::args&) { state.reset(); }

  Shared<Level> level;
  std::unique_ptr<BelowLevel> state;
};

void add_level(py::module_ m) {
  new_class<Level>(m, "Level", "A transform that is in force inside `with`.")
      .def("__enter__",
           [](Shared<Level> self) {
             push_level(self);
             return self;
           })
      .def("__exit__", leave)
      .def("holds",
           [](const Shared<Level>& self, const TensorBase& t) {
             return level_of(t) == self.get();
           })
      .def_property_readonly(
          "kind", [](const Shared<Level>& self) { return self->kind(); })
      .def_property_readonly("depth", [](const Shared<Level>& self) {
        return depth_of(self.get());
      });
  py::class_<Below>(m,
                    "below",
                    "Hides a level inside `with`.",
                    py::module_local(),
                    py::metaclass(reinterpret_cast<PyObject*>(&PyType_Type)))
      .def(py::init<Shared<Level>>())
      .def("__enter__", &Below::enter)
      .def("__exit__", &Below::leave);
}

void add_grad_level(py::module_ m) {
  level_class<GradLevel>(m, "GradLevel", "Reverse mode.")
      .def(py::init([] { return Shared(make_intrusive<GradLevel>()); }))
      .def("wrap", [](Shared<GradLevel> s, TensorBase t) { return s->wrap(t); })
      .def("leaf",
           [](Shared<GradLevel> s, TensorBase t) {
             TensorBase leaf = s->wrap(t);
             autograd::set_requires_grad(leaf, true);
             return leaf;
           })
      .def("unwrap",
           [](Shared<GradLevel> s, TensorBase t) { return s->unwrap(t); });
}

void add_batch_level(py::module_ m) {
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
      .def_property_readonly(
          "size", [](const Shared<BatchLevel>& s) { return s->size(); })
      .def_property_readonly("randomness", [](const Shared<BatchLevel>& s) {
        return randomness_text(s->randomness());
      });
}

void add_dual_level(py::module_ m) {
  level_class<DualLevel>(m, "DualLevel", "Forward mode.")
      .def(py::init([](bool is_transform) {
        return Shared(make_intrusive<DualLevel>(is_transform));
      }))
      .def("set_tangent",
           [](Shared<DualLevel> s, TensorBase t, TensorBase tangent) {
             s->check_tangent(t, tangent);
             s->set_tangent(t, tangent);
           })
      .def("update_tangent",
           [](Shared<DualLevel> s, TensorBase t, TensorBase tangent) {
             s->check_tangent(t, tangent);
             BelowLevel below(*s);
             s->update_tangent(t, tangent);
           })
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
}

void add_functional_level(py::module_ m) {
  using Level = FunctionalLevel;
  level_class<Level>(m, "FunctionalLevel", "Programs without writes.")
      .def(py::init([](bool keep_views, bool is_transform) {
        return Shared(make_intrusive<Level>(keep_views, is_transform));
      }))
      .def_property_readonly(
          "is_transform",
          [](const Shared<Level>& s) { return s->is_transform(); })
      .def_property_readonly(
          "keeps_views",
          [](const Shared<Level>& s) { return s->keeps_views(); })
      .def("wrap", [](Shared<Level> s, TensorBase t) { return s->wrap(t); })
      .def("wrap_inputs",
           [](Shared<Level> s, const std::vector<TensorBase>& inputs) {
             return s->wrap_inputs(inputs);
           })
      .def("unwrap", [](Shared<Level> s, TensorBase t) { return s->unwrap(t); })
      .def("is_changed",
           [](Shared<Level> s, TensorBase t) { return s->is_changed(t); })
      .def("write_back", [](Shared<Level> s) { s->write_back(); })
      .def("output",
           [](Shared<Level> s, TensorBase t) { return s->output(t); });
  m.def("functional_form",
        [](std::string_view name, std::string_view overload) -> py::object {
          const OperatorEntry* op = Dispatcher::get().find(name, overload);
          TAEDA_CHECK(op != nullptr, "no operator ", name, ".", overload);
          const OperatorEntry* form = functional_form(*op);
          if (form == nullptr) return py::none();
          return py::make_tuple(form->name, form->overload);
        });
}

}  // namespace

void bind_levels(py::module_ parent) {
  py::module_ m = py::reinterpret_borrow<py::module_>(
      py::module_::import("types").attr("ModuleType")("taeda._C._functorch"));
  add_level(m);
  add_grad_level(m);
  add_batch_level(m);
  add_dual_level(m);
  add_functional_level(m);
  bind_record_level(m);
  add_queries(m);
  m.def("loops", &BatchLevel::loops);
  m.def("describe", describe);
  m.def("innermost", innermost);
  m.def("depth", [] { return levels().size(); });
  m.def("in_transform", in_transform);
  m.def("fwd_grad_enabled", [] { return local_state.fw_grad_enabled; });
  m.def("set_fwd_grad_enabled", [](bool on) {
    local_state.fw_grad_enabled = on;
    local_state.refresh();
  });
  parent.attr("_functorch") = m;
}

}  // namespace taeda::python
