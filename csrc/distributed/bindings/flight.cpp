// The record of what a process calls, and those who watch over it.
#include <taeda/aten/core/tensor_base.h>
#include <taeda/csrc/distributed/bindings/bindings.h>
#include <taeda/csrc/distributed/flight_record.h>
#include <taeda/csrc/distributed/heartbeat.h>

namespace taeda::distributed {

std::string calling_line() {
  static const auto& package = *new std::string([] {
    auto path =
        py::module_::import("taeda").attr("__file__").cast<std::string>();
    return path.substr(0, path.rfind('/') + 1);
  }());
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  std::string text;
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_ssize_t size = 0;
    const char* name = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
    const std::string_view file(name, name ? static_cast<size_t>(size) : 0);
    const bool outside = !file.starts_with(package);
    if (outside) text = str_cat(file, ":", PyFrame_GetLineNumber(frame));
    Py_DECREF(code);
    PyFrameObject* back = outside ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  PyErr_Clear();
  return text;
}

namespace {

py::object shape_of(const Shape& shape) {
  if (!shape.known) return py::none();
  py::list sizes;
  for (size_t i = 0; i < shape.dims; ++i) sizes.append(shape.sizes[i]);
  return sizes;
}

py::dict as_dict(const FlightEntry& e) {
  py::dict d;
  d["record_id"] = e.id;
  d["pg_name"] = e.group;
  d["collective"] = name_of(e.head.kind);
  d["collective_seq_id"] = e.head.sequence;
  d["bytes"] = e.head.bytes;
  d["dtype"] = std::string(dtype_name(e.head.dtype));
  d["sizes"] = shape_of(e.shape);
  d["op"] = name_of(e.head.op);
  d["root"] = e.head.root;
  d["peer"] = e.peer;
  d["state"] = name_of(e.state);
  d["caller"] = e.place;
  d["timeout_ms"] = e.limit.count();
  d["time_created_ns"] = e.created;
  d["time_started_ns"] = e.started;
  d["time_ended_ns"] = e.ended;
  return d;
}

py::list flight_record() {
  py::list list;
  for (const auto& e : FlightRecord::instance().entries()) {
    list.append(as_dict(e));
  }
  return list;
}

uint64_t begin_flight(const std::string& group,
                      int kind,
                      uint64_t sequence,
                      const py::object& tensor,
                      uint64_t bytes,
                      int peer,
                      Millis limit,
                      int op) {
  const TensorBase& t = bridge().unwrap(tensor.ptr());
  FlightEntry entry;
  entry.group = group;
  entry.place = calling_line();
  entry.head.kind = static_cast<Kind>(kind);
  entry.head.sequence = sequence;
  entry.head.bytes = bytes;
  entry.head.dtype = t.dtype();
  entry.head.op = static_cast<ReduceOp>(op);
  entry.shape = Shape(t.sizes());
  entry.peer = peer;
  entry.limit = limit;
  auto& record = FlightRecord::instance();
  const uint64_t id = record.add(std::move(entry));
  record.start(id);
  return id;
}

// Called by whichever thread runs the collective that failed.
void set_python_reporter(py::function given) {
  auto& reporter = *new py::function(std::move(given));  // for ever
  set_reporter([&reporter](const std::string& group) -> std::string {
    if (Py_IsInitialized() == 0) return "";
    py::gil_scoped_acquire gil;
    try {
      return reporter(group).cast<std::string>();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("the report of a failed collective");
      return "";
    }
  });
}

}  // namespace

void bind_flight_record(py::module_& m) {
  py::dict kinds;
  for (int k = 0; k <= static_cast<int>(Kind::Receive); ++k) {
    kinds[name_of(static_cast<Kind>(k))] = k;
  }
  m.attr("KINDS") = kinds;
  m.def("flight_record",
        &flight_record,
        "The last collectives and messages of this process, oldest first.");
  m.def(
      "begin_flight",
      &begin_flight,
      py::arg("group"),
      py::arg("kind"),
      py::arg("sequence"),
      py::arg("tensor"),
      py::arg("bytes"),
      py::arg("peer"),
      py::arg("timeout"),
      py::arg("op"),
      "Enters a collective or message that has begun, of a backend whose work "
      "is not a Group's; its number.");
  m.def(
      "end_flight",
      [](uint64_t id, bool well) { FlightRecord::instance().end(id, well); },
      py::arg("id"),
      py::arg("well"),
      "Enters the end of one.");
  m.def(
      "reset_flight_record",
      [](size_t most) { FlightRecord::instance().reset(most); },
      py::arg("size"),
      "Forgets all entries; keeps `size` from now on.");
  m.def("set_reporter",
        &set_python_reporter,
        py::arg("reporter"),
        "Who is asked, by a group's name, what to add to an error's text.");
}

void bind_heartbeat(py::module_& m) {
  py::class_<Heartbeat>(
      m, "Heartbeat", "Ends a process in which a thread stands still.")
      .def(py::init<std::string, Millis>(), py::arg("who"), py::arg("limit"))
      .def("beat", &Heartbeat::beat)
      .def("stop", &Heartbeat::stop, Released());
}

}  // namespace taeda::distributed
