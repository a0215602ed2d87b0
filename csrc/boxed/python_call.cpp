#include <taeda/csrc/boxed/python_call.h>

#include <taeda/csrc/boxed/boxed_values.h>
#include <taeda/csrc/python/tensor_type.h>

#include <string_view>
#include <unordered_map>

namespace taeda::python {

// Arithmetic with a number is seen as that with a tensor, which the number then
// stands for: those operators have overloads for numbers only to be quick.
const OperatorEntry& seen_as(const OperatorEntry& op) {
  std::string_view name = op.name, overload = op.overload;
  if (name.ends_with('_')) name.remove_suffix(1);
  bool arithmetic =
      name == "add" || name == "sub" || name == "mul" || name == "div";
  if (!arithmetic || !overload.starts_with("Scalar")) return op;
  const char* tensor = overload == "Scalar_out" ? "out" : "Tensor";
  const OperatorEntry* found = Dispatcher::get().find(op.name, tensor);
  bool fits = found != nullptr && found->info->arguments == op.info->arguments;
  return fits ? *found : op;
}

namespace {
// What Python sees of an operator. Made when it is first asked for; the table
// is guarded by the GIL and kept for good.
struct Face {
  const OperatorEntry* op;  // as it is seen
  Ref overload;
  Kinds kinds;                // of the arguments
  std::vector<Ref> defaults;  // null where the schema gives none
};

// A default as the value that a call would pass.
Ref default_value(const ArgInfo& a, PyObject* literal, const Kind& kind) {
  IValue v = to_ivalue(literal, kind);
  if (v.is<std::vector<int64_t>>() && a.list_size > 0) {
    auto& list = v.get<std::vector<int64_t>>();
    if (list.size() == 1)
      list.resize(static_cast<size_t>(a.list_size), list[0]);
  }
  return to_object(v, kind);
}

const Face& face_of(const OperatorEntry& called) {
  static auto* const faces = new std::unordered_map<const OperatorEntry*, Face>;
  auto found = faces->find(&called);
  if (found != faces->end()) return found->second;
  const OperatorEntry& op = seen_as(called);
  Face face{&op, {}, {}, {}};
  face.overload = checked(PyObject_CallFunction(
      imported("taeda._ops", "overload_of").get(), "ss", op.name, op.overload));
  Ref schema = attribute(face.overload.get(), "_schema");
  Ref arguments = attribute(schema.get(), "arguments");
  for (size_t i = 0; i < op.info->arguments; ++i) {
    const ArgInfo& a = op.info->values[i];
    face.kinds.push_back(kind_of(a));
    Ref argument = checked(
        PySequence_GetItem(arguments.get(), static_cast<Py_ssize_t>(i)));
    bool has = a.has(ArgInfo::kHasDefault);
    face.defaults.push_back(
        has ? default_value(a,
                            attribute(argument.get(), "default_value").get(),
                            face.kinds.back())
            : Ref());
  }
  // Another thread may have been first while Python ran.
  return faces->emplace(&called, std::move(face)).first->second;
}

bool is_default(PyObject* value, PyObject* wanted) {
  if (wanted == nullptr || Py_TYPE(value) != Py_TYPE(wanted)) return false;
  if (is_tensor(value)) return false;
  int same = PyObject_RichCompareBool(value, wanted, Py_EQ);
  check_status(same);
  return same == 1;
}

// Numbers that were given for tensors are seen as numbers.
Ref object_of(const IValue& v, const Kind& kind) {
  if (v.is<TensorBase>()) {
    const TensorBase& t = v.get<TensorBase>();
    if (t.defined() && t.impl()->is_wrapped_number && t.is_cpu() &&
        t.keys() == DispatchKeySet(DispatchKey::CPU)) {
      return Ref(wrap(Scalar::load(t.dtype(), t.const_raw_data())));
    }
  }
  return to_object(v, kind);
}

// Takes no tensors: where its result is made has to be seen in the call.
bool is_factory(const OperatorEntry& op) {
  for (const ArgInfo& a : arguments_of(*op.info)) {
    if (a.is_tensor()) return false;
  }
  return true;
}
// What a factory's argument that was left out means for the result's place.
IValue place_of(const ArgInfo& a, const OperatorEntry& op) {
  if (a.type == ValueType::Device) return default_device();
  if (name_of(a, op.schema) == "pin_memory") return false;
  return {};
}
}  // namespace

PythonCall::PythonCall(const OperatorEntry& called,
                       std::span<const IValue> values) {
  const Face& face = face_of(called);
  const OperatorEntry& op = *face.op;
  function = face.overload;
  std::vector<Ref> objects;
  size_t positional = 0, given = 0;
  bool makes_tensors = is_factory(op);
  for (size_t i = 0; i < values.size(); ++i) {
    bool unsaid = makes_tensors && values[i].is_none();
    objects.push_back(object_of(
        unsaid ? place_of(op.info->values[i], op) : values[i], face.kinds[i]));
    if (op.info->values[i].has(ArgInfo::kKeywordOnly)) continue;
    ++positional;
    if (!is_default(objects[i].get(), face.defaults[i].get())) given = i + 1;
  }
  args =
      new_tuple(given, [&](size_t i) { return Py_NewRef(objects[i].get()); });
  kwargs = checked(PyDict_New());
  for (size_t i = positional; i < values.size(); ++i) {
    PyObject* value = objects[i].get();
    if (is_default(value, face.defaults[i].get())) continue;
    Ref name = new_text(name_of(op.info->values[i], op.schema));
    check_status(PyDict_SetItem(kwargs.get(), name.get(), value));
  }
}

}  // namespace taeda::python
