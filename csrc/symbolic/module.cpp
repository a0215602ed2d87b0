// The extension module taeda._shapes: symbols of sizes, what is known about
// them, and the nodes that Python's taeda.SymInt and SymBool hold.
#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/lent.h>

#include <utility>

namespace taeda::python {

namespace {

// What a SymInt and a SymBool of Python hold, as their attribute `node`.
struct IntNode {
  SymInt value;
};
struct BoolNode {
  SymBool value;
};

SymInt value_in(PyObject* node) {
  return py::cast<const IntNode&>(py::handle(node)).value;
}
PyObject* make_node(const SymInt& v) {
  return py::cast(IntNode{v}).release().ptr();
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
      .def("lay_out",
           [](const Env& env, bool on) {
             return std::exchange(env->lays_out, on);
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
template <class Value>
bool stands_for_number(const Value& v) {
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
      .def("is_number",
           [](const BoolNode& a) { return stands_for_number(a.value); })
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

}  // namespace taeda::python

PYBIND11_MODULE(_shapes, m) {
  using namespace taeda::python;
  borrow_from_native();
  bind_env(m);
  bind_bool(m);
  bind_int(m);
  symbol_nodes() = {value_in, make_node};
  taeda::ShapeEnv::location = asking_line;
  m.def("take_symbolic_fallbacks", taeda::take_symbolic_fallbacks);
  m.def("shared_symbol", taken_node);
}
