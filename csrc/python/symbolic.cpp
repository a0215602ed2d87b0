#include <taeda/csrc/python/symbolic.h>

#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/torch_function.h>

#include <cstring>

namespace taeda::python {

PyTypeObject* sym_int_type = nullptr;

namespace {

// What a SymInt and a SymBool of Python hold, as their attribute `node`.
struct IntNode {
  SymInt value;
};
struct BoolNode {
  SymBool value;
};

const SymInt& number_in(PyObject* o) {
  Ref node = attribute<"node">(o);
  return py::cast<const IntNode&>(py::handle(node.get())).value;
}

SymInt from_handle(const py::handle& o) { return to_symbol(o.ptr()); }
py::object to_python(const SymInt& v) { return owned(wrap(v)); }

// The program's line that asked for a decision: the innermost frame that is
// not the package's own.
std::string asking_line() {
  // Operators run without the lock of the interpreter.
  if (!Py_IsInitialized()) return {};
  py::gil_scoped_acquire locked;
  Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    Ref file = attribute(code.get(), "co_filename");
    std::string name(utf8(file.get()));
    if (name.find("/taeda/") == name.npos) {
      return str_cat(name, ":", int64_t{PyFrame_GetLineNumber(f)});
    }
    frame = Ref(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return {};
}

// Each condition as text, with the line that asked for it.
std::vector<std::pair<std::string, std::string>> guard_texts(
    const ShapeEnv& env, const std::vector<ShapeGuard>& guards) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto& expressions = const_cast<ShapeEnv&>(env).expressions();
  for (const ShapeGuard& g : guards) {
    out.emplace_back(expressions.text(g.condition), g.where);
  }
  return out;
}

DynamicSize parse_dynamic(std::string_view how) {
  if (how == "marked") return DynamicSize::Marked;
  return how == "static" ? DynamicSize::Static : DynamicSize::Duck;
}

// Integers by the sources of symbols ("x.size()[0]"); those without a source by
// their names.
using Sizes = std::unordered_map<std::string, int64_t>;
using Values = std::unordered_map<symbolic::Id, int64_t>;

// The values of the symbols that have one; nothing where the sources of one
// have different sizes.
std::optional<Values> values_of(ShapeEnv& env, const Sizes& sizes) {
  Values values;
  for (symbolic::Id symbol : env.symbols()) {
    for (const std::string& source : env.sources(symbol)) {
      auto found = sizes.find(source);
      if (found == sizes.end()) continue;
      auto [place, fresh] = values.try_emplace(symbol, found->second);
      if (!fresh && place->second != found->second) return std::nullopt;
    }
  }
  return values;
}

// Whether the guards hold where the sources of symbols have these sizes.
bool fits(ShapeEnv& env, const Sizes& sizes) {
  for (symbolic::Id symbol : env.symbols()) {
    for (const std::string& source : env.sources(symbol)) {
      TAEDA_CHECK(sizes.count(source) != 0, "fits: no size for ", source);
    }
  }
  std::optional<Values> values = values_of(env, sizes);
  return values && env.fits(*values);
}

// An expression's value at other sizes than those that were seen.
int64_t evaluate(const SymNode& node, const Sizes& sizes) {
  ShapeEnv& env = *node.env;
  std::optional<Values> values = values_of(env, sizes);
  TAEDA_CHECK(values, "evaluate: sizes of one symbol differ");
  symbolic::Expressions& expressions = env.expressions();
  for (symbolic::Id symbol : expressions.symbols_of(node.id)) {
    auto found = sizes.find(expressions.name_of(symbol));
    if (found != sizes.end()) values->emplace(symbol, found->second);
  }
  // As it was written: what guards said since would hide that they fail.
  return expressions.evaluate(node.id, *values);
}

void bind_env(py::module_ m) {
  using Env = Shared<ShapeEnv>;
  new_class<ShapeEnv>(m, "ShapeEnv", "Symbols of one trace, and its guards.")
      .def(py::init([] { return Env(make_intrusive<ShapeEnv>()); }))
      .def("create_size",
           [](const Env& env,
              int64_t hint,
              std::string source,
              std::string_view how) {
             return to_python(
                 env->create_size(hint, std::move(source), parse_dynamic(how)));
           })
      .def("create_unbacked",
           [](const Env& env, py::handle low, py::handle high) {
             int64_t least =
                 low.is_none() ? symbolic::Range::kLow : py::cast<int64_t>(low);
             int64_t most = high.is_none() ? symbolic::Range::kHigh
                                           : py::cast<int64_t>(high);
             return to_python(env->create_unbacked(least, most));
           })
      .def("guards",
           [](const Env& env) { return guard_texts(*env, env->guards()); })
      .def("assertions",
           [](const Env& env) { return guard_texts(*env, env->assertions()); })
      .def("conditions",
           [](const Env& env) {
             std::vector<std::pair<BoolNode, std::string>> out;
             for (const ShapeGuard& g : env->guards()) {
               out.emplace_back(BoolNode{env->wrap_truth(g.condition)},
                                g.where);
             }
             return out;
           })
      .def("sources",
           [](const Env& env) {
             std::vector<
                 std::tuple<std::string, std::vector<std::string>, int64_t>>
                 out;
             for (symbolic::Id symbol : env->symbols()) {
               out.emplace_back(env->expressions().name_of(symbol),
                                env->sources(symbol),
                                env->lowest(symbol));
             }
             return out;
           })
      .def("fits", [](const Env& env, const Sizes& sizes) {
        return fits(*env, sizes);
      });
}

// A symbolic value for extension modules that share no code with this one: the
// address of its node, which the Python object keeps alive.
constexpr const char* kNodeName = "taeda.SymNode";
template <class Value>
py::object shared_node(const Value& v) {
  if (!v.is_symbolic()) return py::none();
  return py::capsule(v.node(), kNodeName);
}
bool stands_for_number(const SymInt& v) {
  return v.is_symbolic() && v.node()->env->stands_for_numbers;
}
py::object taken_node(const py::capsule& shared) {
  auto* node =
      static_cast<SymNode*>(PyCapsule_GetPointer(shared.ptr(), kNodeName));
  if (node == nullptr) throw PythonError();
  return to_python(SymInt(IntrusivePtr<SymNode>::share(node)));
}

// taeda.SymInt is a class of Python (`_symbols.py`), which knows about
// operators of Python; what it computes with is this node, with one method for
// each operation.
void bind_int(py::module_ m) {
  auto* type = reinterpret_cast<PyObject*>(&PyType_Type);
  py::class_<IntNode> node(
      m, "_IntNode", "An integer.", py::module_local(), py::metaclass(type));
  auto binary = [&](const char* name,
                    SymInt (*f)(const SymInt&, const SymInt&)) {
    node.def(name, [f](const IntNode& a, const py::handle& b) {
      return to_python(f(a.value, from_handle(b)));
    });
  };
  binary("add", [](const SymInt& a, const SymInt& b) { return a + b; });
  binary("sub", [](const SymInt& a, const SymInt& b) { return a - b; });
  binary("rsub", [](const SymInt& a, const SymInt& b) { return b - a; });
  binary("mul", [](const SymInt& a, const SymInt& b) { return a * b; });
  binary("floordiv", [](const SymInt& a, const SymInt& b) { return a / b; });
  binary("rfloordiv", [](const SymInt& a, const SymInt& b) { return b / a; });
  binary("mod", [](const SymInt& a, const SymInt& b) { return a % b; });
  binary("rmod", [](const SymInt& a, const SymInt& b) { return b % a; });
  binary("min", [](const SymInt& a, const SymInt& b) { return sym_min(a, b); });
  binary("max", [](const SymInt& a, const SymInt& b) { return sym_max(a, b); });
  auto compare = [&](const char* name,
                     SymBool (*f)(const SymInt&, const SymInt&)) {
    node.def(name, [f](const IntNode& a, const py::handle& b) {
      return BoolNode{f(a.value, from_handle(b))};
    });
  };
  compare("eq", sym_eq);
  compare("lt", sym_lt);
  compare("le", sym_le);
  // Two comparisons and their mirror images are all that expressions have.
  compare("gt", [](const SymInt& a, const SymInt& b) { return sym_lt(b, a); });
  compare("ge", [](const SymInt& a, const SymInt& b) { return sym_le(b, a); });
  node.def("share", [](const IntNode& a) { return shared_node(a.value); })
      .def("is_number",
           [](const IntNode& a) { return stands_for_number(a.value); })
      .def("text", [](const IntNode& a) { return a.value.text(); })
      .def("fix", [](const IntNode& a) { return a.value.guard(); })
      .def("is_fixed",
           [](const IntNode& a) {
             // Arithmetic simplifies by what is known now, and a symbol that
             // has been fixed since becomes its number.
             const SymInt zero = a.value - SymInt(0);
             return !zero.is_symbolic();
           })
      .def("hint",
           [](const IntNode& a) -> py::object {
             if (!has_hints({a.value})) return py::none();
             return py::int_(hint_of(a.value, 0));
           })
      .def("evaluate",
           [](const IntNode& a, const Sizes& sizes) {
             if (!a.value.is_symbolic()) return a.value.plain();
             return evaluate(*a.value.node(), sizes);
           })
      .def("env", [](const IntNode& a) {
        return a.value.is_symbolic() ? Shared<ShapeEnv>(a.value.node()->env)
                                     : Shared<ShapeEnv>();
      });
}

SymBool truth_of(const py::handle& o) {
  if (py::isinstance<BoolNode>(o)) return py::cast<const BoolNode&>(o).value;
  return SymBool(py::cast<bool>(o));
}

void bind_bool(py::module_ m) {
  auto* type = reinterpret_cast<PyObject*>(&PyType_Type);
  py::class_<BoolNode>(
      m, "_BoolNode", "A condition.", py::module_local(), py::metaclass(type))
      .def("share", [](const BoolNode& a) { return shared_node(a.value); })
      .def("text", [](const BoolNode& a) { return a.value.text(); })
      .def("decide", [](const BoolNode& a) { return a.value.guard(); })
      .def("known",
           [](const BoolNode& a) -> py::object {
             if (a.value.is_symbolic()) return py::none();
             return py::bool_(a.value.guard());
           })
      .def("has_hint",
           [](const BoolNode& a) {
             if (!a.value.is_symbolic()) return true;
             SymNode* node = a.value.node();
             return node->env->hint(node->id).has_value();
           })
      .def("hold",
           [](const BoolNode& a, const std::string& message) {
             if (!a.value.is_symbolic()) {
               TAEDA_CHECK(a.value.guard(), message);
               return;
             }
             SymNode* node = a.value.node();
             node->env->assert_true(node->id, message);
           })
      .def("evaluate",
           [](const BoolNode& a, const Sizes& sizes) {
             if (!a.value.is_symbolic()) return a.value.guard();
             return evaluate(*a.value.node(), sizes) != 0;
           })
      .def("negate", [](const BoolNode& a) { return BoolNode{!a.value}; })
      .def("both",
           [](const BoolNode& a, const py::handle& b) {
             return BoolNode{a.value & truth_of(b)};
           })
      .def("either", [](const BoolNode& a, const py::handle& b) {
        return BoolNode{a.value | truth_of(b)};
      });
}

}  // namespace

SymInt to_symbol(PyObject* o) {
  return is_symbol(o) ? number_in(o) : SymInt(to_int(o));
}

Dims<SymInt> to_symbols(PyObject* o, const char* where) {
  Dims<SymInt> out;
  Ref items(is_symbol(o) ? PyTuple_Pack(1, o) : PySequence_Fast(o, where));
  if (!items) throw PythonError();
  for (PyObject* item : items_of(items.get())) {
    if (!is_symbol(item) && !is_int_like(item) && !PyIndex_Check(item)) {
      raise(PyExc_TypeError,
            "{}: expected tuple of ints, but found element of type {}",
            where,
            type_name_of(item));
    }
    out.push_back(to_symbol(item));
  }
  return out;
}

PyObject* wrap(const SymInt& v) {
  if (!v.is_symbolic()) return PyLong_FromLongLong(v.plain());
  // What is known by now may have made it an integer.
  SymInt now = v + SymInt(0);
  if (!now.is_symbolic()) return PyLong_FromLongLong(now.plain());
  py::object node = py::cast(IntNode{std::move(now)});
  return checked(PyObject_CallFunctionObjArgs(
                     imported("taeda._symbols", "SymInt").get(),
                     node.ptr(),
                     nullptr))
      .release();
}

PyObject* new_symbolic_tuple(ArrayRef<SymInt> values) {
  return new_tuple(values.size(), [&](size_t i) { return wrap(values[i]); })
      .release();
}
PyObject* new_symbolic_list(ArrayRef<SymInt> values) {
  return new_list(values.size(), [&](size_t i) { return wrap(values[i]); })
      .release();
}

// The call that Args has bound, made again through the operator's object in
// Python, which takes symbols. The names of its arguments, as the schema has
// them, stand behind the signature's text; one that is empty has no place in
// the schema.
PyObject* call_symbolic(const Args& args) {
  const Overload& overload = args.overload();
  const char* text = overload.signature + std::strlen(overload.signature) + 1;
  auto next = [&] {
    const char* part = text;
    text += std::strlen(part) + 1;
    return part;
  };
  const char* name = next();
  const char* variant = next();
  Ref keywords = checked(PyDict_New());
  bool requires_grad = false;
  for (int i = 0; i < overload.count; ++i) {
    const char* argument = next();
    if (args[i] == nullptr) continue;
    if (*argument == '\0') {
      bool is_out = std::strcmp(overload.params[i].name, "out") == 0;
      TAEDA_CHECK_AS(NotImplemented,
                     !is_out || !args.given(i),
                     name,
                     ": out= is not there for calls with symbolic integers");
      bool grad = std::strcmp(overload.params[i].name, "requires_grad") == 0;
      requires_grad |= grad && args.flag(i);
      continue;
    }
    ArrayRef<PyObject*> list = args.variadic(i);
    Ref value = Ref::borrow(args[i]);
    if (!list.empty()) {
      value =
          new_tuple(list.size(), [&](size_t k) { return Py_NewRef(list[k]); });
    }
    check_status(PyDict_SetItemString(keywords.get(), argument, value.get()));
  }
  Ref operation = checked(PyObject_CallFunction(
      imported("taeda._ops", "overload_of").get(), "ss", name, variant));
  Ref none_of_it = checked(PyTuple_New(0));
  Ref out =
      checked(PyObject_Call(operation.get(), none_of_it.get(), keywords.get()));
  if (requires_grad) {
    checked(PyObject_CallMethod(out.get(), "requires_grad_", nullptr));
  }
  return out.release();
}

void bind_symbolic(PyObject* module) {
  py::module_ m = as_module(module);
  bind_env(m);
  bind_bool(m);
  bind_int(m);
  ShapeEnv::location = asking_line;
  m.def("_set_sym_int_type", [](py::handle type) {
    sym_int_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
  });
  m.def("_take_symbolic_fallbacks", take_symbolic_fallbacks);
  m.def("_shared_symbol", taken_node);
}

}  // namespace taeda::python
