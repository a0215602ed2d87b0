// Entry points of hand-written tensor methods and getters: each first gives
// way to __torch_function__, then runs its body with errors translated.
#pragma once

#include <taeda/csrc/python/torch_function.h>
#include <taeda/gen/python/tensor_docs.h>

namespace taeda::python {

// Arguments of one call of a hand-written method.
struct MethodArgs {
  PyObject* self;
  PyObject* const* args;
  Py_ssize_t count;
  PyObject* names;

  const TensorBase& tensor() const { return unwrap(self); }
};

template <FixedName Name, PyObject* (*Body)(const TensorBase&)>
PyObject* getter_entry(PyObject* self, void*) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_getter(self, Name.text);
  }
  return guarded([&] { return Body(unwrap(self)); });
}

template <FixedName Name, void (*Body)(const TensorBase&, PyObject*)>
int setter_entry(PyObject* self, PyObject* value, void*) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_setter(self, Name.text, value);
  }
  return guarded_status([&] { Body(unwrap(self), value); });
}

template <FixedName Name, PyObject* (*Body)(const TensorBase&)>
PyObject* query_entry(PyObject* self, PyObject*) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_method(self, Name.text);
  }
  return guarded([&] { return Body(unwrap(self)); });
}

template <FixedName Name, PyObject* (*Body)(const MethodArgs&)>
PyObject* fast_entry(PyObject* self,
                     PyObject* const* args,
                     Py_ssize_t count,
                     PyObject* names) {
  auto handed_over = [&] {
    return override_method(self, Name.text, args, count, names);
  };
  if (TAEDA_UNLIKELY(overrides(self))) return handed_over();
  return unless_overridden([&] { return Body({self, args, count, names}); },
                           handed_over);
}

inline PyObject* to_object(PyObject* fresh) { return fresh; }
template <class T>
PyObject* to_object(T v) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return wrap(static_cast<int64_t>(v));
  } else {
    return wrap(std::move(v));
  }
}

// The text of a name in tensor_docs.yaml, found when the tables are compiled. A
// method without one does not compile; names that begin with an underscore need
// none.
consteval const char* tensor_doc(std::string_view name) {
  for (const TensorDoc& doc : kTensorDocs) {
    if (doc.name == name) return doc.text;
  }
  if (name.front() != '_') throw "tensor_docs.yaml has no text for this name";
  return nullptr;
}

// Rows whose result is an expression of the tensor `t`.
#define TAEDA_BODY(...) \
  [](const TensorBase& t) -> PyObject* { return to_object(__VA_ARGS__); }
#define TAEDA_QUERY(name, ...)                  \
  {name,                                        \
   &query_entry<name, TAEDA_BODY(__VA_ARGS__)>, \
   METH_NOARGS,                                 \
   tensor_doc(name)}
#define TAEDA_FAST(name, body) \
  TAEDA_PY_ROW(name, tensor_doc(name), fast_entry<name, body>)
#define TAEDA_GETTER(name, ...)                  \
  {name,                                         \
   &getter_entry<name, TAEDA_BODY(__VA_ARGS__)>, \
   nullptr,                                      \
   tensor_doc(name),                             \
   nullptr}
#define TAEDA_PROPERTY(name, set, ...)           \
  {name,                                         \
   &getter_entry<name, TAEDA_BODY(__VA_ARGS__)>, \
   &setter_entry<name, set>,                     \
   tensor_doc(name),                             \
   nullptr}

// The table of a hand-written method or function, made of its signature when
// that is compiled: "(int dim = None)". Functions begin with "(object".
template <size_t N>
class Signature {
 public:
  consteval Signature(const char (&text)[N]) : shown_(text) {
    std::string_view rest(text + 1, N - 3);
    if (rest.starts_with("object")) {
      self_ = -1;
    } else {
      params_[count_++] = {"input", nullptr, ParamType::Tensor, 0, 0};
    }
    uint8_t keyword = 0;
    while (!rest.empty()) {
      size_t end = rest.find(", ");
      std::string_view part = rest.substr(0, end);
      rest = end == rest.npos ? std::string_view() : rest.substr(end + 2);
      if (part == "*") {
        keyword = Param::kKeywordOnly;
      } else {
        add(part, keyword);
      }
    }
  }
  constexpr Overload overload() const {
    return {params_, count_, self_, 0, nullptr, shown_, shown_};
  }

 private:
  constexpr void add(std::string_view part, uint8_t flags) {
    size_t equals = part.find(" = ");
    std::string_view left = part.substr(0, equals);
    std::string_view name = left.substr(left.rfind(' ') + 1);
    std::string_view type = left.substr(0, left.size() - name.size() - 1);
    if (equals != part.npos) flags |= Param::kHasDefault;
    if (part.ends_with(" = None") || type == "object")
      flags |= Param::kNullable;
    if (type.starts_with("taeda.")) type.remove_prefix(5);
    const auto* found = std::ranges::find(kTypeTexts, type);
    if (found == std::end(kTypeTexts)) throw "no such type of parameters";
    const char* alias = name == "dim" ? "axis\0" : nullptr;
    char* kept = names_ + used_;
    std::copy(name.begin(), name.end(), kept);
    used_ += name.size() + 1;
    auto kind = static_cast<ParamType>(found - kTypeTexts);
    params_[count_++] = {kept, alias, kind, flags, 0};
  }

  const char* shown_;
  Param params_[8] = {};
  uint8_t count_ = 0;
  int8_t self_ = 0;
  char names_[N] = {};  // each ended by a NUL
  size_t used_ = 0;
};

// Calls of such methods are bound like those of generated ones.
class BoundArgs : public Args {
 public:
  template <size_t N>
  BoundArgs(const char* name, const Signature<N>& s, const MethodArgs& m)
      : BoundArgs(name, {s.overload()}, m) {}
  BoundArgs(const char* name,
            std::initializer_list<Overload> overloads,
            const MethodArgs& m) {
    std::copy(overloads.begin(), overloads.end(), overloads_);
    function_ = {name, "", overloads_, static_cast<int>(overloads.size())};
    Call call{&function_, m.self, m.args, m.count, m.names};
    for (index_ = 0; index_ < function_.count; ++index_) {
      if (!bind(overloads_[index_], call)) continue;
      if (overridden()) throw OverriddenArgument();
      return;
    }
    raise_no_match(call);
  }
  // Which overload fits.
  int index() const { return index_; }

 private:
  Overload overloads_[3];
  Function function_;
  int index_ = 0;
};

}  // namespace taeda::python
