#include <taeda/csrc/compiler/capture/graph.h>

#include <algorithm>

namespace taeda::capture {
namespace {

Ref value_of(const Argument& a,
             std::span<const Ref> values,
             const SizeValues& sizes);

Ref tuple_of(const Argument& a,
             std::span<const Ref> values,
             const SizeValues& sizes) {
  auto n = static_cast<Py_ssize_t>(a.items.size());
  Ref out = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyTuple_SET_ITEM(
        out.get(), i, value_of(a.items[i], values, sizes).release());
  }
  PyObject* type = a.object.get();
  if (type == reinterpret_cast<PyObject*>(&PyTuple_Type)) return out;
  // A named tuple takes its items one by one, a Size all at once.
  return checked(PyObject_HasAttrString(type, "_fields") != 0
                     ? PyObject_Call(type, out.get(), nullptr)
                     : PyObject_CallOneArg(type, out.get()));
}

Ref list_of(const Argument& a,
            std::span<const Ref> values,
            const SizeValues& sizes) {
  Ref out = checked(PyList_New(0));
  for (const Argument& item : a.items) {
    Ref value = value_of(item, values, sizes);
    python::check_status(PyList_Append(out.get(), value.get()));
  }
  return out;
}

Ref dict_of(const Argument& a,
            std::span<const Ref> values,
            const SizeValues& sizes) {
  Ref out = checked(PyDict_New());
  for (size_t i = 0; i < a.items.size(); ++i) {
    Ref value = value_of(a.items[i], values, sizes);
    PyObject* key = PyTuple_GET_ITEM(a.object.get(), i);
    python::check_status(PyDict_SetItem(out.get(), key, value.get()));
  }
  return out;
}

Ref applied(const Argument& a,
            std::span<const Ref> values,
            const SizeValues& sizes) {
  Ref args = python::new_tuple(a.items.size(), [&](size_t i) {
    return value_of(a.items[i], values, sizes).release();
  });
  return checked(PyObject_Call(a.object.get(), args.get(), nullptr));
}

Ref value_of(const Argument& a,
             std::span<const Ref> values,
             const SizeValues& sizes) {
  switch (a.kind) {
    case Argument::Node:
      return values[a.node];
    case Argument::Constant:
      return a.object;
    case Argument::Tuple:
      return tuple_of(a, values, sizes);
    case Argument::List:
      return list_of(a, values, sizes);
    case Argument::Dict:
      return dict_of(a, values, sizes);
    case Argument::Size:
      return checked(sizes.number(a.node));
    case Argument::Apply:
      return applied(a, values, sizes);
    case Argument::Slice:
      break;
  }
  Ref from = value_of(a.items[0], values, sizes);
  Ref to = value_of(a.items[1], values, sizes);
  Ref by = value_of(a.items[2], values, sizes);
  return checked(PySlice_New(from.get(), to.get(), by.get()));
}

void mark(const Argument& a, int reader, std::vector<int>& last) {
  if (a.kind == Argument::Node) last[a.node] = reader;
  for (const Argument& item : a.items) mark(item, reader, last);
}

Ref run_call(const Call& call,
             std::span<const Ref> values,
             const SizeValues& sizes) {
  std::vector<Ref> held;
  std::vector<PyObject*> args;
  held.reserve(call.args.size());
  args.reserve(call.args.size());
  for (const Argument& a : call.args) {
    held.push_back(value_of(a, values, sizes));
    args.push_back(held.back().get());
  }
  size_t named = call.names ? PyTuple_GET_SIZE(call.names.get()) : 0;
  return checked(PyObject_Vectorcall(
      call.function.get(), args.data(), args.size() - named, call.names.get()));
}

}  // namespace

int Graph::add_input(int place) {
  calls_.push_back({});
  calls_.back().input = place;
  return static_cast<int>(calls_.size()) - 1;
}

int Graph::add_call(Call call) {
  calls_.push_back(std::move(call));
  return static_cast<int>(calls_.size()) - 1;
}

size_t Graph::call_count() const {
  size_t n = 0;
  for (const Call& c : calls_) n += c.function.get() != nullptr;
  return n;
}

bool Graph::is_read(size_t node) const {
  const std::vector<int>& frees = calls_[node].frees;
  return std::find(frees.begin(), frees.end(), static_cast<int>(node)) ==
         frees.end();
}

void Graph::finish(const std::vector<int>& outputs) {
  std::vector<int> last(calls_.size());
  for (size_t i = 0; i < calls_.size(); ++i) {
    last[i] = static_cast<int>(i);
    for (const Argument& a : calls_[i].args) {
      mark(a, static_cast<int>(i), last);
    }
  }
  for (int o : outputs) last[o] = -1;
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (last[i] >= 0) calls_[last[i]].frees.push_back(static_cast<int>(i));
  }
}

std::vector<Ref> Graph::run(std::span<const Ref> inputs,
                            SizeValues& sizes) const {
  std::vector<Ref> values(calls_.size());
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    if (call.input >= 0) {
      values[i] = inputs[call.input];
    } else if (call.function) {
      values[i] = run_call(call, values, sizes);
    }
    if (call.defines >= 0) sizes.define(call.defines, values[i].get());
    for (int dead : call.frees) values[dead] = Ref();
  }
  return values;
}

}  // namespace taeda::capture
