// TypeErrors of calls that fit no overload, in PyTorch's words.
#include <taeda/aten/settings.h>
#include <taeda/csrc/python/arg_parser.h>

#include <algorithm>
#include <set>

namespace taeda::python {

namespace {
std::string type_text(ParamType type) {
  std::string_view text = kTypeTexts[static_cast<int>(type)];
  return str_cat(text[0] == '.' ? library_name() : "", text);
}

std::string type_of(PyObject* o) { return type_name_of(o); }

// An overload as this call sees it: without the method's own object.
struct View {
  const Overload& overload;
  const Call& call;

  bool skip(int i) const {
    return call.self != nullptr &&
           (i == overload.self || overload.params[i].has(Param::kFunctionOnly));
  }
  bool usable() const { return call.self == nullptr || overload.self >= 0; }
  std::string signature() const {
    std::string text =
        call.self != nullptr ? overload.method_signature : overload.signature;
    // Tables say taeda; a program may know the library by another name.
    std::string name = library_name();
    for (size_t at = 0; name != "taeda";) {
      at = text.find("taeda.", at);
      if (at == std::string::npos) break;
      text.replace(at, 5, name);
      at += name.size();
    }
    return text;
  }
  template <class F>
  int64_t count_if(F&& f) const {
    int64_t n = 0;
    for (int i = 0; i < overload.count; ++i) {
      n += !skip(i) && f(overload.params[i]);
    }
    return n;
  }
  int64_t positional() const {
    return count_if([](const Param& p) { return !p.has(Param::kKeywordOnly); });
  }
  int64_t required() const {
    return count_if([](const Param& p) { return !p.has(Param::kHasDefault); });
  }
  int64_t total() const {
    return count_if([](const Param&) { return true; });
  }
};

std::string head(const Call& call) {
  return std::string(call.function->name) + "()";
}

[[noreturn]] void extra_positional(const View& v) {
  int64_t most = v.positional(), least = v.required();
  int64_t given = v.call.count;
  std::string from = least == most ? "" : message("from {} to ", least);
  raise(PyExc_TypeError,
        "{} takes {}{} positional argument{} but {} {} given",
        head(v.call),
        from,
        most,
        most == 1 && from.empty() ? "" : "s",
        given,
        given == 1 && from.empty() ? "was" : "were");
}

[[noreturn]] void missing(const View& v, int from) {
  std::string names;
  int64_t n = 0;
  for (int i = from; i < v.overload.count; ++i) {
    const Param& p = v.overload.params[i];
    if (v.skip(i) || p.has(Param::kHasDefault)) continue;
    names += str_cat(n++ > 0 ? ", " : "", "\"", p.name, "\"");
  }
  raise(PyExc_TypeError,
        "{} missing {} required positional argument{}: {}",
        head(v.call),
        n,
        n == 1 ? "s" : "",  // as PyTorch spells it
        names);
}

[[noreturn]] void wrong_type(const View& v,
                             const Param& p,
                             PyObject* object,
                             int64_t position) {
  std::string text = str_cat(head(v.call), ": argument '", p.name, "'");
  if (position > 0) text += str_cat(" (position ", position, ")");
  text += " must be " + type_text(p.type);
  bool is_list = is_sequence(object) && Py_SIZE(object) > 0;
  if (p.type == ParamType::IntList && is_list) {
    text += message(", but found element of type {} at pos 0",
                    type_name_of(items_of(object)[0]));
  } else {
    text += ", not " + type_of(object);
  }
  raise_text(PyExc_TypeError, text);
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

[[noreturn]] void wrong_keywords(const View& v) {
  for (Py_ssize_t k = 0; k < v.call.keywords(); ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(v.call.names, k);
    bool known = false;
    for (int i = 0; i < v.overload.count; ++i) {
      known |= !v.skip(i) && names_param(keyword, v.overload.params[i]);
    }
    if (!known) {
      raise(PyExc_TypeError,
            "{} got an unexpected keyword argument '{}'",
            head(v.call),
            utf8(keyword));
    }
  }
  int64_t position = 0;
  for (int i = 0; i < v.overload.count; ++i) {
    if (v.skip(i) || position++ >= v.call.count) continue;
    if (find_keyword(v.call, v.overload.params[i]) == nullptr) continue;
    raise(PyExc_TypeError,
          "{} got multiple values for argument '{}'",
          head(v.call),
          v.overload.params[i].name);
  }
  raise(PyExc_TypeError, "{}: invalid keyword arguments", head(v.call));
}

// Says why the one plausible overload does not fit.
[[noreturn]] void explain(const View& v) {
  bool variadic =
      v.count_if([](const Param& p) { return p.has(Param::kVariadic); }) > 0;
  if (v.call.count > v.positional() && !variadic) extra_positional(v);
  int64_t position = 0;
  for (int i = 0; i < v.overload.count; ++i) {
    const Param& p = v.overload.params[i];
    if (v.skip(i)) continue;
    bool by_position = position < v.call.count;
    if (by_position && p.has(Param::kKeywordOnly)) extra_positional(v);
    PyObject* object =
        by_position ? v.call.args[position] : find_keyword(v.call, p);
    if (object == nullptr && !p.has(Param::kHasDefault)) missing(v, i);
    bool taken = by_position && p.has(Param::kVariadic) && is_int_like(object);
    if (taken) position = v.call.count - 1;
    if (object != nullptr && !taken && !fits(p, object)) {
      wrong_type(v, p, object, by_position ? position + 1 : 0);
    }
    position += by_position;
  }
  wrong_keywords(v);
}

std::string describe(const Call& call) {
  std::string text = "(";
  for (Py_ssize_t i = 0; i < call.count + call.keywords(); ++i) {
    if (i > 0) text += ", ";
    if (i >= call.count) {
      text += utf8(PyTuple_GET_ITEM(call.names, i - call.count));
      text += "=";
    }
    text += type_of(call.args[i]);
  }
  return text + ")";
}

// The parts of "(Tensor input, *, Number alpha = 1)".
std::vector<std::string> parts_of(std::string_view signature) {
  std::vector<std::string> parts;
  signature = signature.substr(1, signature.size() - 2);
  int depth = 0;
  std::string part;
  for (char c : signature) {
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (c == ',' && depth == 0) {
      parts.push_back(std::move(part));
      part.clear();
    } else if (c != ' ' || !part.empty()) {
      part.push_back(c);
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

std::pair<std::string, std::string> type_and_name(std::string part) {
  part = part.substr(0, part.find(" = "));
  size_t space = part.rfind(' ');
  if (space == std::string::npos) return {"", part};
  return {part.substr(0, space), part.substr(space + 1)};
}

bool same_type(const std::string& type, PyObject* o) {
  std::string got = type_of(o);
  if (type == "Number" || type == "float") {
    return got == "int" || got == "float";
  }
  return type == got;
}

// PyTorch's second line under an overload with as many parts as arguments.
std::string mismatch(const Call& call, std::string_view signature) {
  std::vector<std::string> parts = parts_of(signature);
  auto keywords = static_cast<size_t>(call.keywords());
  if (parts.size() != static_cast<size_t>(call.count) + keywords) return "";
  auto keyword = [&](size_t k) {
    return utf8(PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(k)));
  };
  auto positional = static_cast<size_t>(call.count);
  std::string wrong;
  for (size_t k = 0; k < keywords; ++k) {
    bool known = std::any_of(
        parts.begin() + call.count, parts.end(), [&](const std::string& part) {
          return type_and_name(part).second == keyword(k);
        });
    if (!known) wrong += str_cat(wrong.empty() ? "" : ", ", keyword(k));
  }
  if (!wrong.empty()) {
    return message(
        "      didn't match because some of the keywords were incorrect: {}\n",
        wrong);
  }
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto [type, name] = type_and_name(parts[i]);
    size_t at = i;
    for (size_t k = 0; i >= positional && k < keywords; ++k) {
      if (keyword(k) == name) at = positional + k;
    }
    PyObject* object = call.args[at];
    const char* mark = same_type(type, object) ? "" : "!";
    text += i > 0 ? ", " : "";
    if (i >= positional) text += name + "=";
    text += mark + type_of(object) + mark;
  }
  return message(
      "      didn't match because some of the arguments have invalid types: "
      "({})\n",
      text);
}
}  // namespace

void raise_no_match(const Call& call) {
  const Function& f = *call.function;
  std::vector<View> shown, visible;
  for (int i = 0; i < f.count; ++i) {
    View v{f.overloads[i], call};
    if (!v.usable() || (v.overload.flags & Overload::kHidden)) continue;
    shown.push_back(v);
    if (!(v.overload.flags & Overload::kDeprecated)) visible.push_back(v);
  }
  if (shown.size() == 1) {
    if (call.self != nullptr && shown[0].total() == 0 && call.count > 0) {
      raise(PyExc_TypeError,
            "TensorBase.{} takes no arguments ({} given)",
            head(call),
            call.count);
    }
    explain(shown[0]);
  }
  int64_t given = call.count + call.keywords();
  std::vector<View> plausible;
  for (const View& v : visible) {
    if (given >= v.required() && given <= v.total()) plausible.push_back(v);
  }
  if (plausible.size() == 1) explain(plausible[0]);
  std::string text = head(call) +
                     " received an invalid combination of arguments - got " +
                     describe(call) + ", but expected ";
  if (visible.size() == 1) {
    raise_text(PyExc_TypeError, text + visible[0].signature());
  }
  text += "one of:\n";
  for (const View& v : visible) {
    text += str_cat(" * ", v.signature(), "\n");
    text += mismatch(call, v.signature());
  }
  raise_text(PyExc_TypeError, text);
}

void warn_deprecated(const Call& call, const Overload& overload) {
  static std::set<const Overload*> warned;  // read and written under the GIL
  if (!warned.insert(&overload).second && !settings::warn_always) return;
  const Function& f = *call.function;
  auto text_of = [&](const Overload& o) {
    return str_cat("\n\t", f.name, View{o, call}.signature());
  };
  std::string text = message(
      "This overload of {} is deprecated:{}\nConsider using one of the "
      "following signatures instead:",
      f.name,
      text_of(overload));
  for (int i = 0; i < f.count; ++i) {
    const Overload& o = f.overloads[i];
    if (o.flags == 0 && (call.self == nullptr || o.self >= 0)) {
      text += text_of(o);
    }
  }
  check_status(PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1));
}

}  // namespace taeda::python
