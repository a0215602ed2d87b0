// The thread's stack of modes, and what a part makes of it.
#include <taeda/csrc/compiler/capture/function_modes.h>

#include <taeda/csrc/compiler/capture/interpreter.h>

#include <algorithm>

namespace taeda::capture {
namespace {

std::vector<Ref> stack() {
  Ref count = checked(PyObject_CallNoArgs(library().mode_count.get()));
  std::vector<Ref> out;
  for (Py_ssize_t i = 0; i < PyLong_AsSsize_t(count.get()); ++i) {
    PyObject* mode = PyObject_CallFunction(library().mode_at.get(), "n", i);
    out.push_back(checked(mode));
  }
  return out;
}

}  // namespace

std::vector<Ref> function_modes() {
  return library().has_modes() ? stack() : std::vector<Ref>();
}

std::vector<Ref> exchange_function_modes(const std::vector<Ref>& next) {
  std::vector<Ref> before = stack();
  for (size_t i = 0; i < before.size(); ++i) {
    checked(PyObject_CallNoArgs(library().pop_mode.get()));
  }
  for (const Ref& each : next) {
    checked(PyObject_CallOneArg(library().push_mode.get(), each.get()));
  }
  return before;
}

FunctionModesAside::FunctionModesAside() : changes_(library().has_modes()) {
  if (changes_) modes_ = exchange_function_modes({});
}

FunctionModesAside::~FunctionModesAside() {
  if (!changes_) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  try {
    exchange_function_modes(modes_);
  } catch (const PythonError&) {
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
}

void FunctionModesAside::replace(std::vector<Ref> next) {
  modes_ = std::move(next);
  changes_ = true;
}

// Stand-ins of the modes that the part begins under, on top of the recorder.
void Capture::enter_function_modes(const std::vector<Ref>& outer) {
  entry.function_modes = outer.size();
  for (size_t i = 0; i < outer.size(); ++i) {
    kept.push_back(outer[i]);
    int place = entry.guards.fetch(
        Do::FunctionMode, -1, nullptr, static_cast<int64_t>(i));
    Ref inner = realize(outer[i].get(), place);
    modes_before.push_back(inner);
    checked(PyObject_CallOneArg(library().push_mode.get(), inner.get()));
  }
}

// Those that the part ends under; nothing where they are as at the beginning.
std::optional<std::vector<Ref>> Capture::changed_function_modes() const {
  std::vector<Ref> now = stack();
  now.erase(now.begin());  // the recorder
  bool same =
      std::ranges::equal(now, modes_before, [](const Ref& a, const Ref& b) {
        return a.get() == b.get();
      });
  if (same) return std::nullopt;
  return now;
}

}  // namespace taeda::capture
