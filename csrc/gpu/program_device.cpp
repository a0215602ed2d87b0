// The device that a program adds: devices, streams, events, memory and
// generators, for taeda/_program_device.py. Note [Devices of programs].
#include <taeda/aten/core/memory.h>
#include <taeda/c10/core/program_device.h>
#include <taeda/csrc/gpu/bind.h>

#include <cstring>

namespace taeda::python {

namespace {

// A mark in a stream, made by its first record. Owned by its Python object.
class ProgramEvent {
 public:
  explicit ProgramEvent(bool timing) : timing_(timing) {}
  ~ProgramEvent() {
    if (event_ != nullptr) program_device().free_event(event_, device_);
  }
  ProgramEvent(const ProgramEvent&) = delete;
  ProgramEvent& operator=(const ProgramEvent&) = delete;

  void record(int device, int64_t id) {
    program_device().record(&event_, {device, id}, timing_);
    device_ = device;
  }
  void block(int device, int64_t id) const {
    if (event_ != nullptr) program_device().wait({device, id}, event_);
  }
  bool query() const {
    return event_ == nullptr || program_device().query_event(event_);
  }
  void wait() const {
    if (event_ != nullptr) program_device().wait_event(event_);
  }
  double until(const ProgramEvent& end) const {
    return program_device().milliseconds(event_, end.event_, device_);
  }
  uintptr_t id() const { return reinterpret_cast<uintptr_t>(event_); }

 private:
  bool timing_;
  void* event_ = nullptr;
  int device_ = 0;
};

TensorBase pinned(const TensorBase& t) {
  Allocator* allocator = program_device().host_allocator();
  TAEDA_CHECK(allocator != nullptr,
              "pin_memory: the device ",
              privateuse1_name(),
              " has no page-locked memory");
  size_t bytes = t.storage() ? t.storage()->nbytes() : 0;
  DataPtr memory = allocator->allocate(bytes);
  if (bytes > 0) std::memcpy(memory.data, t.storage()->data(), bytes);
  return over_memory(memory, bytes, t.dtype(), t.sizes(), t.strides());
}

py::dict memory_stats() {
  AllocatorStats s = allocator_for(DeviceType::PrivateUse1).stats();
  py::dict out;
  out["allocated"] = s.allocated;
  out["peak"] = s.peak_allocated;
  out["cached"] = s.cached;
  out["allocations"] = s.allocations;
  return out;
}

void bind_streams_of(py::module_& m) {
  m.def("program_stream",
        [](int device) { return program_device().current_stream(device).id; });
  m.def("set_program_stream", [](int device, int64_t id) {
    program_device().set_stream({device, id});
  });
  m.def("new_program_stream", [](int device, int priority) {
    return program_device().new_stream(device, priority).id;
  });
  m.def(
      "query_program_stream",
      [](int device, int64_t id) {
        return program_device().query({device, id});
      },
      Release());
  m.def(
      "wait_program_stream",
      [](int device, int64_t id) {
        program_device().wait(GpuStream{device, id});
      },
      Release());
  m.def("record_program_stream",
        [](const TensorBase& t, int device, int64_t id) {
          program_device().record_stream(t.storage(), {device, id});
        });
  py::class_<ProgramEvent>(m, "ProgramEvent", py::module_local())
      .def(py::init<bool>())
      .def("record", &ProgramEvent::record)
      .def("block", &ProgramEvent::block)
      .def("query", &ProgramEvent::query, Release())
      .def("wait", &ProgramEvent::wait, Release())
      .def("until", &ProgramEvent::until)
      .def("id", &ProgramEvent::id);
}

}  // namespace

void bind_program_device(py::module_& m) {
  m.def("rename_program_device", rename_privateuse1);
  m.def("program_device", [] { return program_device().current_device(); });
  m.def("set_program_device",
        [](int device) { program_device().set_device(device); });
  m.def(
      "synchronize_program_device",
      [](int device) { program_device().synchronize(device); },
      Release());
  m.def("program_generator", [](int device) {
    return owned(wrap(program_device().default_generator(device)));
  });
  m.def("pinned_for_program", pinned);
  m.def("is_pinned_for_program", [](const TensorBase& t) {
    return t.is_cpu() && t.storage() && t.storage()->nbytes() > 0 &&
           program_device().is_pinned(t.storage()->data());
  });
  m.def("program_memory_stats", memory_stats);
  m.def("reset_program_peak",
        [] { allocator_for(DeviceType::PrivateUse1).reset_peak(); });
  m.def("empty_program_cache",
        [] { allocator_for(DeviceType::PrivateUse1).empty_cache(); });
  bind_streams_of(m);
}

}  // namespace taeda::python
