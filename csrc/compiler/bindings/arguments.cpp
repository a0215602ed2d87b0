#include <taeda/csrc/compiler/bindings/arguments.h>

namespace taeda::compiler {

using python::checked;
using python::PythonError;
using python::Ref;

namespace {

constexpr const char* kNodeName = "taeda.SymNode";

std::vector<SymInt> sizes_in(PyObject* tuple) {
  std::vector<SymInt> out;
  for (PyObject* o : python::items_of(tuple)) {
    std::optional<SymInt> size = unwrap_size(o);
    TAEDA_CHECK(size, "compile: a size is an integer or a symbol");
    out.push_back(std::move(*size));
  }
  return out;
}

// The same expression in a copy of its env.
SymInt moved(const SymInt& v, ShapeEnv& env) {
  return v.is_symbolic() ? env.wrap(v.node()->id) : v;
}
std::vector<SymInt> moved(const std::vector<SymInt>& list, ShapeEnv& env) {
  std::vector<SymInt> out;
  for (const SymInt& v : list) out.push_back(moved(v, env));
  return out;
}

}  // namespace

bool is_tensor(PyObject* o) {
  return PyObject_TypeCheck(o, bridge().tensor_type);
}

Ref wrap_size(const SymInt& v) {
  if (!v.is_symbolic()) return checked(PyLong_FromLongLong(v.plain()));
  Ref shared = checked(PyCapsule_New(v.node(), kNodeName, nullptr));
  Ref wrap = python::imported("taeda._shapes", "shared_symbol");
  return checked(PyObject_CallOneArg(wrap.get(), shared.get()));
}

std::optional<SymInt> unwrap_size(PyObject* o) {
  if (PyLong_CheckExact(o)) {
    int64_t value = PyLong_AsLongLong(o);
    if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    return SymInt(value);
  }
  Ref type = python::imported("taeda", "SymInt");
  if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != type.get()) {
    return std::nullopt;
  }
  Ref node = checked(PyObject_GetAttrString(o, "node"));
  Ref shared = checked(PyObject_CallMethod(node.get(), "share", nullptr));
  // A SymInt of a plain integer shares nothing.
  if (shared.get() == Py_None) {
    return SymInt(int64_t{PyLong_AsLongLong(checked(PyNumber_Index(o)).get())});
  }
  void* found = PyCapsule_GetPointer(shared.get(), kNodeName);
  if (found == nullptr) throw PythonError();
  return SymInt(IntrusivePtr<SymNode>::share(static_cast<SymNode*>(found)));
}

Signature::Signature(PyObject* arguments) {
  if (arguments == Py_None) return;
  Ref list = checked(PySequence_List(arguments));
  for (PyObject* o : python::items_of(list.get())) {
    std::optional<SymInt> number;
    if (o != Py_None && !PyTuple_Check(o)) number = unwrap_size(o);
    is_number_.push_back(number.has_value());
    if (number) {
      if (number->is_symbolic()) env_ = number->node()->env;
      known_.symbols.push_back(std::move(*number));
      continue;
    }
    known_.inputs.emplace_back();
    if (o == Py_None) continue;
    known_.inputs.back() = {sizes_in(PyTuple_GET_ITEM(o, 0)),
                            sizes_in(PyTuple_GET_ITEM(o, 1))};
  }
}

std::optional<Arguments> Signature::read(PyObject* const* args,
                                         size_t count) const {
  if (!is_number_.empty() && count != is_number_.size()) return std::nullopt;
  Arguments out;
  out.tensors.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (is_number_.empty() || !is_number_[i]) {
      if (!is_tensor(args[i])) return std::nullopt;
      out.tensors.push_back(python::unwrap(args[i]));
      continue;
    }
    if (PyLong_CheckExact(args[i])) {
      int overflow = 0;
      out.numbers.push_back(PyLong_AsLongLongAndOverflow(args[i], &overflow));
      if (overflow != 0) return std::nullopt;
      continue;
    }
    std::optional<SymInt> seen = unwrap_size(args[i]);
    if (!seen) return std::nullopt;
    out.numbers.push_back(hint(*seen));
  }
  return out;
}

SymbolicInputs Signature::symbols(const DimVector& numbers) const {
  std::unordered_map<symbolic::Id, int64_t> seen;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const SymInt& v = known_.symbols[i];
    if (v.is_symbolic()) seen[v.node()->id] = numbers[i];
  }
  SymbolicInputs out;
  out.env = env_->with_hints(seen);
  out.env->stands_for_numbers = true;
  out.symbols = moved(known_.symbols, *out.env);
  for (const auto& geometry : known_.inputs) {
    out.inputs.emplace_back();
    if (!geometry) continue;
    out.inputs.back() = {moved(geometry->sizes, *out.env),
                         moved(geometry->strides, *out.env)};
  }
  return out;
}

Ref Signature::merged(std::span<const TensorBase> tensors,
                      std::span<const SymInt> numbers) const {
  size_t tensor = 0, number = 0;
  return python::new_tuple(tensors.size() + numbers.size(), [&](size_t i) {
    return !is_number_.empty() && is_number_[i]
               ? wrap_size(numbers[number++]).release()
               : bridge().wrap(tensors[tensor++]);
  });
}

}  // namespace taeda::compiler
