// TypeErrors of calls that fit no overload. Their texts are written in Python
// (taeda/_call_errors.py), which is told here what the call and the overloads
// are.
#include <taeda/aten/settings.h>
#include <taeda/csrc/python/casters.h>

#include <cstring>
#include <set>

namespace taeda::python {

namespace {
std::string type_text(ParamType type) {
  std::string_view text = kTypeTexts[static_cast<int>(type)];
  return str_cat(text[0] == '.' ? library_name() : "", text);
}

// Tables say taeda; a program may know the library by another name.
std::string signature_of(const Overload& overload, const Call& call) {
  std::string text =
      call.self != nullptr ? overload.method_signature : overload.signature;
  std::string name = library_name();
  for (size_t at = 0; name != "taeda";) {
    at = text.find("taeda.", at);
    if (at == std::string::npos) break;
    text.replace(at, 5, name);
    at += name.size();
  }
  return text;
}

// Whether one object fits a parameter: an overload of that parameter alone.
bool fits(const Param& p, PyObject* object) {
  Param alone = p;
  alone.flags &= ~Param::kKeywordOnly;
  Overload overload = {&alone, 1, -1, 0, nullptr, "", ""};
  PyObject* args[] = {object};
  Args bound;
  return bound.bind(overload, {nullptr, nullptr, args, 1, nullptr});
}

// The fields of `_call_errors.Parameter`.
py::tuple describe(const Param& p, const Call& call) {
  std::vector<const char*> names = {p.name};
  const char* alias = p.aliases == nullptr ? "" : p.aliases;
  for (; *alias != '\0'; alias += std::strlen(alias) + 1) {
    names.push_back(alias);
  }
  std::vector<bool> fitting;
  for (Py_ssize_t i = 0; i < call.count + call.keywords(); ++i) {
    fitting.push_back(fits(p, call.args[i]));
  }
  return py::make_tuple(names,
                        type_text(p.type),
                        p.type == ParamType::IntList,
                        p.has(Param::kHasDefault),
                        p.has(Param::kKeywordOnly),
                        p.has(Param::kVariadic),
                        fitting);
}

// (signature, deprecated, parameters), as this call sees it: without the
// method's own object.
py::tuple describe(const Overload& overload, const Call& call) {
  py::list params;
  for (int i = 0; i < overload.count; ++i) {
    const Param& p = overload.params[i];
    bool skipped = i == overload.self || p.has(Param::kFunctionOnly);
    if (call.self == nullptr || !skipped) params.append(describe(p, call));
  }
  return py::make_tuple(signature_of(overload, call),
                        (overload.flags & Overload::kDeprecated) != 0,
                        params);
}

bool is_usable(const Overload& overload, const Call& call) {
  return call.self == nullptr || overload.self >= 0;
}
}  // namespace

void raise_no_match(const Call& call) {
  const Function& f = *call.function;
  py::list overloads;
  for (int i = 0; i < f.count; ++i) {
    const Overload& o = f.overloads[i];
    bool shown = is_usable(o, call) && (o.flags & Overload::kHidden) == 0;
    if (shown) overloads.append(describe(o, call));
  }
  // (type, type of the first item, whether it is an integer)
  py::list args;
  for (Py_ssize_t i = 0; i < call.count + call.keywords(); ++i) {
    PyObject* o = call.args[i];
    bool has_items = is_sequence(o) && Py_SIZE(o) > 0;
    args.append(py::make_tuple(type_name_of(o),
                               has_items ? type_name_of(items_of(o)[0]) : "",
                               is_int_like(o)));
  }
  py::object names = call.names == nullptr
                         ? py::tuple()
                         : py::reinterpret_borrow<py::object>(call.names);
  py::object text = owned(imported("taeda._call_errors", "no_match"))(
      f.name, call.self != nullptr, args, names, overloads);
  raise_text(PyExc_TypeError, py::cast<std::string>(text));
}

void warn_deprecated(const Call& call, const Overload& overload) {
  static std::set<const Overload*> warned;  // read and written under the GIL
  if (!warned.insert(&overload).second && !settings::warn_always) return;
  const Function& f = *call.function;
  auto text_of = [&](const Overload& o) {
    return str_cat("\n\t", f.name, signature_of(o, call));
  };
  std::string text = message(
      "This overload of {} is deprecated:{}\nConsider using one of the "
      "following signatures instead:",
      f.name,
      text_of(overload));
  for (int i = 0; i < f.count; ++i) {
    const Overload& o = f.overloads[i];
    if (o.flags == 0 && is_usable(o, call)) text += text_of(o);
  }
  check_status(PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1));
}

}  // namespace taeda::python
