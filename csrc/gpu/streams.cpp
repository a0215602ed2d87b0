// Streams and events.
#include <taeda/c10/core/gpu_parts.h>
#include <taeda/csrc/gpu/bind.h>

namespace taeda::python {

namespace {

// Owned by its Python object.
class GpuEvent {
 public:
  explicit GpuEvent(void* event) : event_(event) {}
  GpuEvent(int device, bool timing, bool blocking, bool interprocess)
      : GpuEvent(gpu().new_event(device, timing, blocking, interprocess)) {}
  ~GpuEvent() { gpu().free_event(event_); }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;
  void* get() const { return event_; }

 private:
  void* event_;
};

}  // namespace

void bind_streams(py::module_& m) {
  m.def("current_stream",
        [](int device) { return gpu().current_stream(device).id; });
  m.def("set_stream",
        [](int device, int64_t id) { gpu().set_stream({device, id}); });
  m.def("new_stream", [](int device, int priority) {
    return gpu().new_stream(device, priority).id;
  });
  m.def(
      "stream_query",
      [](int device, int64_t id) { return gpu().query({device, id}); },
      Release());
  m.def(
      "stream_wait",
      [](int device, int64_t id) { gpu().wait(GpuStream{device, id}); },
      Release());
  m.def("stream_priority",
        [](int device, int64_t id) { return gpu().priority({device, id}); });
  m.def("stream_handle",
        [](int device, int64_t id) { return gpu().handle({device, id}); });
  py::class_<GpuEvent>(m, "Event", "A mark in a stream", py::module_local())
      .def(py::init<int, bool, bool, bool>())
      .def_static("open",
                  [](int device, const std::string& handle) {
                    void* event = gpu().sharing().open_event(device, handle);
                    return std::make_unique<GpuEvent>(event);
                  })
      .def("handle",
           [](const GpuEvent& e) {
             return py::bytes(gpu().sharing().event_handle(e.get()));
           })
      .def("record",
           [](const GpuEvent& e, int device, int64_t id) {
             gpu().record(e.get(), {device, id});
           })
      .def("block",
           [](const GpuEvent& e, int device, int64_t id) {
             gpu().wait({device, id}, e.get());
           })
      .def(
          "query",
          [](const GpuEvent& e) { return gpu().query_event(e.get()); },
          Release())
      .def(
          "wait",
          [](const GpuEvent& e) { gpu().wait_event(e.get()); },
          Release())
      .def("until", [](const GpuEvent& e, const GpuEvent& end) {
        return gpu().milliseconds(e.get(), end.get());
      });
}

}  // namespace taeda::python
