// The extension module taeda._profiler: the recorder and the guard, and where a
// program is; for taeda.profiler and taeda.debug.
#include <taeda/aten/core/dispatcher.h>
#include <taeda/c10/core/gpu.h>
#include <taeda/csrc/profiler/nan_guard.h>
#include <taeda/csrc/profiler/recorder.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/lent.h>

#include <unordered_map>

namespace taeda::python {

namespace {

// Places ----------------------------------------------------------------------

// A line of a frame, and the place that called it; number 0 is nowhere. The
// table is guarded by the GIL and lives until the recording or guard ends.
struct Place {
  uint32_t caller;
  PyCodeObject* code;  // a reference of its own
  int next;            // as PyFrame_GetLasti
  uintptr_t module;    // id() of the module that is called, or 0
  bool operator==(const Place&) const = default;
};
class Places {
 public:
  uint32_t number(const Place& wanted) {
    uint64_t key =
        (reinterpret_cast<uintptr_t>(wanted.code) ^ wanted.module << 16) *
            0x9E3779B97F4A7C15U ^
        uint64_t { wanted.caller } << 32 ^ static_cast<uint32_t>(wanted.next);
    // Keys may collide: whoever has the number tells.
    auto [from, to] = numbers_.equal_range(key);
    for (auto it = from; it != to; ++it) {
      if (all_[it->second - 1] == wanted) return it->second;
    }
    Py_INCREF(wanted.code);
    all_.push_back(wanted);
    auto made = static_cast<uint32_t>(all_.size());
    numbers_.emplace(key, made);
    return made;
  }
  // The frames of a place, innermost first, as (file, line, function).
  py::list frames(uint32_t place) const {
    py::list out;
    while (place != 0 && place <= all_.size()) {
      const Place& p = all_[place - 1];
      py::handle code(reinterpret_cast<PyObject*>(p.code));
      out.append(py::make_tuple(code.attr("co_filename"),
                                PyCode_Addr2Line(p.code, p.next),
                                code.attr("co_qualname")));
      place = p.caller;
    }
    return out;
  }
  // The same as (code, offset of the instruction, module).
  py::list codes(uint32_t place) const {
    py::list out;
    while (place != 0 && place <= all_.size()) {
      const Place& p = all_[place - 1];
      py::handle code(reinterpret_cast<PyObject*>(p.code));
      out.append(py::make_tuple(code, p.next, p.module));
      place = p.caller;
    }
    return out;
  }
  void clear() {
    for (const Place& p : all_) Py_DECREF(p.code);
    all_.clear();
    numbers_.clear();
  }

 private:
  std::vector<Place> all_;
  std::unordered_multimap<uint64_t, uint32_t> numbers_;
};
Places& places() {
  static auto* all = new Places;
  return *all;
}

// Code of Module.__call__, whose first argument is the module; null until
// taeda.cuda names it.
PyObject* module_call = nullptr;

// The names of that frame are arguments, which it holds anyway.
uintptr_t module_of(PyFrameObject* frame) {
  py::object names = owned(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_locals"));
  PyObject* self = PyMapping_GetItemString(names.ptr(), "self");
  if (self == nullptr) PyErr_Clear();
  Py_XDECREF(self);  // an address is kept, no reference
  return reinterpret_cast<uintptr_t>(self);
}

uint32_t place_in(Places& table, bool with_modules = false) {
  constexpr size_t kMost = 128;
  Place seen[kMost];
  size_t count = 0;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame != nullptr && count < kMost) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    bool calls =
        with_modules && reinterpret_cast<PyObject*>(code) == module_call;
    seen[count++] = {
        0, code, PyFrame_GetLasti(frame), calls ? module_of(frame) : 0};
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  uint32_t place = 0;
  for (size_t i = count; i-- > 0;) {
    seen[i].caller = place;
    place = table.number(seen[i]);
    Py_DECREF(seen[i].code);
  }
  return place;
}

uint32_t capture_place() {
  if (!Py_IsInitialized()) return 0;
  GilAcquire gil;
  return place_in(places());
}

// Where the program took memory of GPUs. Kept for as long as the process lives,
// since memory is: a program has so many places and no more.
Places& origins() {
  static auto* all = new Places;
  return *all;
}
uint32_t capture_origin() {
  // Threads that have never run Python have no place in it.
  if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) {
    return 0;
  }
  GilAcquire gil;
  return place_in(origins(), /*with_modules=*/true);
}
// For an error, which nothing that goes wrong here may hide.
std::string describe_origin(uint32_t origin) {
  if (!Py_IsInitialized()) return "";
  GilAcquire gil;
  try {
    py::object describe =
        py::module_::import("taeda.cuda._origins").attr("describe");
    return py::cast<std::string>(describe(origins().codes(origin)));
  } catch (py::error_already_set& e) {
    return str_cat("(", e.what(), ")");
  }
}

// What was recorded -----------------------------------------------------------

py::object value_object(const IValue& v) {
  return std::visit(
      [](const auto& x) -> py::object {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
                      std::is_same_v<T, double> ||
                      std::is_same_v<T, std::string> ||
                      std::is_same_v<T, std::vector<int64_t>> ||
                      std::is_same_v<T, std::vector<double>> ||
                      std::is_same_v<T, std::vector<bool>>) {
          return py::cast(x);
        } else if constexpr (std::is_same_v<T, complex<double>>) {
          return owned(PyComplex_FromDoubles(x.real(), x.imag()));
        } else if constexpr (std::is_same_v<T, Device>) {
          return py::cast(x.str());
        } else {
          return py::none();
        }
      },
      v.value());
}

// (kind of value, dtypes, sizes, strides, value)
py::tuple argument_object(const profiler::Argument& a) {
  py::list dtypes;
  for (ScalarType t : a.dtypes) dtypes.append(std::string(dtype_name(t)));
  return py::make_tuple(static_cast<int>(a.type),
                        dtypes,
                        a.sizes,
                        a.strides,
                        value_object(a.value));
}

class Names {
 public:
  py::tuple of(const profiler::Event& e) {
    if (e.kind == profiler::Kind::Memory) return memory_;
    auto [it, is_new] = made_.try_emplace(e.name);
    if (!is_new) return it->second;
    if (e.kind == profiler::Kind::Operator) {
      std::string name = e.op->qualified_name();
      size_t dot = name.find('.', name.find("::"));
      it->second = py::make_tuple(name.substr(0, dot), e.op->overload);
    } else {
      it->second = py::make_tuple(*e.name, "");
    }
    return it->second;
  }

 private:
  py::tuple memory_ = py::make_tuple("[memory]", "");
  std::unordered_map<const void*, py::tuple> made_;
};

py::tuple event_object(const profiler::Event& e, Names& names) {
  bool memory = e.kind == profiler::Kind::Memory;
  return py::make_tuple(static_cast<int>(e.kind),
                        names.of(e),
                        e.parent,
                        e.start,
                        e.end,
                        e.sequence,
                        e.stack,
                        e.arguments,
                        e.results,
                        e.bytes,
                        e.total,
                        memory ? reinterpret_cast<uintptr_t>(e.address) : 0);
}

// (start, end, [(thread, events, arguments)], {place: frames})
py::tuple stop_recording() {
  profiler::Recording recording = [] {
    // Threads that append may be waiting for the GIL.
    GilRelease no_gil(true);
    return profiler::stop_recording();
  }();
  Names names;
  py::list threads;
  py::dict stacks;
  for (const profiler::ThreadEvents& thread : recording.threads) {
    py::list events, arguments;
    for (const profiler::Event& e : thread.events) {
      events.append(event_object(e, names));
      py::int_ place(e.stack);
      if (e.stack != 0 && !stacks.contains(place)) {
        stacks[place] = places().frames(e.stack);
      }
    }
    for (const auto& call : thread.arguments) {
      py::list values;
      for (const profiler::Argument& a : call)
        values.append(argument_object(a));
      arguments.append(values);
    }
    threads.append(py::make_tuple(thread.thread, events, arguments));
  }
  places().clear();
  return py::make_tuple(recording.start, recording.end, threads, stacks);
}

// The guard -------------------------------------------------------------------

// taeda.debug's function of (frames, module); set while guarding.
PyObject* describe = nullptr;

std::string place_text(uint32_t stack, int64_t module) {
  GilAcquire gil;
  if (describe == nullptr) return {};
  try {
    py::object text = py::handle(describe)(places().frames(stack), module);
    return py::cast<std::string>(text);
  } catch (py::error_already_set& e) {
    return str_cat(" (its place: ", e.what(), ")");
  }
}

void start_guard(py::object describer, bool infinities) {
  profiler::capture_stack = capture_place;
  profiler::start_guard({infinities, place_text});
  Py_XSETREF(describe, describer.release().ptr());
}
void stop_guard() {
  profiler::stop_guard();
  Py_CLEAR(describe);
  places().clear();
}
}  // namespace

}  // namespace taeda::python

PYBIND11_MODULE(_profiler, m) {
  using namespace taeda::python;
  namespace profiler = taeda::profiler;
  borrow_from_native();
  m.def("start", [](bool shapes, bool memory, bool stacks) {
    profiler::capture_stack = capture_place;
    profiler::start_recording({shapes, memory, stacks});
  });
  m.def("stop", stop_recording);
  m.def("enabled", profiler::is_recording);
  // An event around what follows, of a module or of record_function.
  m.def("begin", [](const std::string& name, bool is_module) {
    profiler::Kind kind =
        is_module ? profiler::Kind::Module : profiler::Kind::User;
    return profiler::begin_event(kind, name);
  });
  m.def("end", profiler::end_event);
  m.def("guard_start", start_guard);
  m.def("guard_stop", stop_guard);
  m.def("guard_module", profiler::exchange_module);
  taeda::gpu_origins = {capture_origin, describe_origin};
  m.def("gpu_modules",
        [](py::object code) { Py_XSETREF(module_call, code.release().ptr()); });
  m.def("gpu_origin", [](uint32_t origin) { return origins().frames(origin); });
}
