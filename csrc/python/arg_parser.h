// Calls of operators from Python: tables that tools/codegen writes, and the
// arguments that one call bound to them. See Note [Binding].
#pragma once

#include <taeda/c10/core/generator.h>
#include <taeda/csrc/python/symbolic.h>
#include <taeda/csrc/python/tensor_type.h>
#include <taeda/csrc/python/values.h>

namespace taeda::python {

// Note [Binding]
// A Function has overloads in the order in which PyTorch tries them. Binding
// walks an overload's parameters once, checks each object by its type alone and
// stores borrowed references in slots; the first overload that fits is called.
// Conversions happen in the overload's own function, which knows the types.
// Nothing allocates, and no text is touched before a call has failed.

enum class ParamType : uint8_t {
  Tensor,
  Scalar,
  Int,
  Float,
  Bool,
  Text,
  Dtype,
  Layout,
  Device,
  MemoryFormat,
  Generator,
  IntList,
  FloatList,
  BoolList,
  ScalarList,
  TensorList,
  OptionalTensorList,
  Object,  // anything, for hand-written signatures
};
// As signatures and errors name them; the library's name stands before a dot.
inline constexpr std::string_view kTypeTexts[] = {
    "Tensor",
    "Number",
    "int",
    "float",
    "bool",
    "str",
    ".dtype",
    ".layout",
    ".device",
    ".memory_format",
    ".Generator",
    "tuple of ints",
    "tuple of floats",
    "tuple of bools",
    "tuple of Scalars",
    "tuple of Tensors",
    "tuple of Tensors",
    "object",
};

struct Param {
  static constexpr uint8_t kHasDefault = 1;
  static constexpr uint8_t kKeywordOnly = 2;
  static constexpr uint8_t kNullable = 4;
  // Takes all positional arguments when the first of them is an int.
  static constexpr uint8_t kVariadic = 8;
  // A Tensor parameter that takes Python numbers.
  static constexpr uint8_t kNumber = 16;
  // Not a parameter of the method (`out`).
  static constexpr uint8_t kFunctionOnly = 32;

  const char* name;
  const char* aliases;  // names divided and ended by NULs, or null
  ParamType type;
  uint8_t flags;
  int16_t size;  // N of int[N]: one int stands for the list; 0 if none

  bool has(uint8_t flag) const { return (flags & flag) != 0; }
};

class Args;

struct Overload {
  static constexpr uint8_t kDeprecated = 1;
  static constexpr uint8_t kHidden = 2;  // not named in error messages

  const Param* params;
  uint8_t count;
  int8_t self;  // index of the parameter that a method's object is, or -1
  uint8_t flags;
  PyObject* (*call)(const Args&);
  // "(Tensor input, *, Number alpha = 1)", for functions and for methods. After
  // the first lie, each ended by a NUL, the operator's name, its overload and
  // the argument that each parameter is.
  const char* signature;
  const char* method_signature;
};

struct Function {
  const char* name;
  const char* module;  // "", "nn", "linalg", ...
  const Overload* overloads;
  int count;
};

// One call on its way: positional arguments, then keyword values.
struct Call {
  const Function* function;
  PyObject* self;  // the object of a method call, or null
  PyObject* const* args;
  Py_ssize_t count;  // positional arguments
  PyObject* names;   // tuple of keywords, or null

  Py_ssize_t keywords() const {
    return names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  }
};

// Lists that live until the end of the call.
using TensorVector = SmallVector<TensorBase, 4>;
using OptionalTensorVector = SmallVector<OptionalTensor, 4>;
template <class Values, class Item>
struct OptionalList {
  Values values;
  bool given = false;
  operator std::optional<ArrayRef<Item>>() const {
    if (!given) return std::nullopt;
    return ArrayRef<Item>(values);
  }
};
using OptionalInts = OptionalList<DimVector, int64_t>;
using OptionalFloats = OptionalList<std::vector<double>, double>;

inline constexpr int kMaxParams = 32;
// Elements from which on a kernel runs without the GIL.
inline constexpr int64_t kReleaseGilAbove = 16384;

// Objects that stand for a number or a list, by type alone.
bool is_int_like(PyObject* o);
bool is_float_like(PyObject* o);
bool is_scalar_like(PyObject* o);
Scalar to_scalar(PyObject* o);
int64_t to_int(PyObject* o);
double to_double(PyObject* o);
DimVector to_ints(PyObject* o, const char* where);
// The value of an object that was checked to be of the kind; the defaults of
// devices and generators stand for None.
template <class T>
T from_python(PyObject* o) {
  if constexpr (std::is_same_v<T, Scalar>) {
    if (TAEDA_UNLIKELY(is_symbol(o))) throw SymbolicArgument();
    return to_scalar(o);
  }
  if constexpr (std::is_same_v<T, int64_t>) {
    if (TAEDA_UNLIKELY(is_symbol(o))) throw SymbolicArgument();
    return to_int(o);
  }
  if constexpr (std::is_same_v<T, double>) return to_double(o);
  if constexpr (std::is_same_v<T, bool>) {
    return o == Py_True || (o != Py_False && PyObject_IsTrue(o) == 1);
  }
  if constexpr (std::is_same_v<T, std::string_view>) return utf8(o);
  if constexpr (std::is_same_v<T, ScalarType>) return to_dtype(o);
  if constexpr (std::is_same_v<T, Layout>) return to_layout(o);
  if constexpr (std::is_same_v<T, MemoryFormat>) return to_memory_format(o);
  bool given = o != nullptr && o != Py_None;
  if constexpr (std::is_same_v<T, Device>) {
    return given ? to_device(o) : default_device();
  }
  if constexpr (std::is_same_v<T, Generator>) {
    return given ? to_generator(o) : Generator();
  }
}

class Args {
 public:
  bool bind(const Overload& overload, const Call& call);

  PyObject* operator[](int i) const { return slots_[i]; }
  bool given(int i) const {
    return slots_[i] != nullptr && slots_[i] != Py_None;
  }
  bool overridden() const { return overridden_; }
  bool large() const { return work_ > kReleaseGilAbove; }
  const Overload& overload() const { return *overload_; }
  // A new reference to an argument, for results that are one.
  PyObject* object(int i) const { return Py_NewRef(slots_[i]); }

  const TensorBase& tensor(int i) const { return unwrap(slots_[i]); }
  TensorBase tensor_or_number(int i) const;
  OptionalTensor optional_tensor(int i) const;
  TensorVector tensors(int i) const;
  OptionalTensorVector optional_tensors(int i) const;
  // A number, dtype, device, ...: what from_python makes of the argument.
  template <class T>
  T get(int i) const {
    return from_python<T>(slots_[i]);
  }
  template <class T>
  T get(int i, const std::type_identity_t<T>& otherwise) const {
    return slots_[i] == nullptr ? otherwise : from_python<T>(slots_[i]);
  }
  // nullopt for None too.
  template <class T>
  std::optional<T> maybe(int i) const {
    return given(i) ? std::optional<T>(from_python<T>(slots_[i]))
                    : std::nullopt;
  }
  bool flag(int i, bool otherwise = false) const {
    return get<bool>(i, otherwise);
  }
  std::vector<Scalar> scalars(int i) const;
  DimVector ints(int i, std::initializer_list<int64_t> otherwise = {}) const;
  OptionalInts optional_ints(int i) const;
  std::vector<double> floats(int i) const;
  OptionalFloats optional_floats(int i) const;
  SmallVector<bool, 4> flags(int i) const;
  // The objects of a list of integers that are given one by one, else none.
  ArrayRef<PyObject*> variadic(int i) const {
    bool here =
        variadic_count_ >= 0 && overload_->params[i].has(Param::kVariadic);
    if (!here) return {};
    return {const_cast<PyObject**>(variadic_),
            static_cast<size_t>(variadic_count_)};
  }
  // The k-th tensor of an `out` tuple.
  const TensorBase& out(int i, int k) const;

 private:
  bool put(const Param& param, int i, PyObject* object);
  bool check(const Param& param, PyObject* object);
  bool fits(const Param& param, PyObject* object);
  bool check_tensor(const Param& param, PyObject* object);
  bool check_tensor_list(const Param& param, PyObject* object);
  int64_t checked_int(PyObject* object, int i, size_t at) const;

  PyObject* slots_[kMaxParams];
  const Overload* overload_ = nullptr;
  const Function* function_ = nullptr;
  PyObject* const* variadic_ = nullptr;
  Py_ssize_t variadic_count_ = -1;
  mutable int64_t work_ = 0;
  bool overridden_ = false;
};

// The call that was bound, with symbols among its integers: as the operator.
PyObject* call_symbolic(const Args& args);
// Binds and calls; a new reference, or null with Python's error set.
PyObject* call_function(const Call& call);
// Like call_function, but NotImplemented when no overload fits.
PyObject* call_operator(const Call& call);
[[noreturn]] void raise_no_match(const Call& call);
// Whether a keyword is the parameter's name or another name for it, and the
// value that a call gives by such a keyword.
bool names_param(PyObject* keyword, const Param& param);
PyObject* find_keyword(const Call& call, const Param& param);

// Sets requires_grad on a factory's result when asked.
PyObject* finish_factory(TensorBase result, bool requires_grad);
// Warns once per signature about a deprecated overload.
void warn_deprecated(const Call& call, const Overload& overload);

template <const Function& F>
PyObject* function_entry(PyObject*,
                         PyObject* const* args,
                         Py_ssize_t count,
                         PyObject* names) {
  return call_function({&F, nullptr, args, count, names});
}
template <const Function& F>
PyObject* method_entry(PyObject* self,
                       PyObject* const* args,
                       Py_ssize_t count,
                       PyObject* names) {
  return call_function({&F, self, args, count, names});
}

// A row of a method table, for a function that takes arguments as they come.
#define TAEDA_PY_ROW(name, doc, ...)              \
  {name,                                          \
   (PyCFunction)(void (*)(void)) & (__VA_ARGS__), \
   METH_FASTCALL | METH_KEYWORDS,                 \
   doc}
#define TAEDA_PY_FUNCTION(name, table, doc) \
  TAEDA_PY_ROW(name, doc, function_entry<table>)
#define TAEDA_PY_METHOD(name, table, doc) \
  TAEDA_PY_ROW(name, doc, method_entry<table>)

struct StructType;
// What the generated registry holds.
struct FunctionShard {
  const Function* const* functions;  // ends with null
  PyMethodDef* definitions;          // of functions
  const char* const* modules;        // where each definition goes
  PyMethodDef* methods;
  StructType* const* structs;  // ends with null
};
extern const FunctionShard* const function_shards[];
// By ATen's name; null where the records have none.
const Function* find_function(std::string_view name);

}  // namespace taeda::python
