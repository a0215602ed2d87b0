// The extension module taeda._cuda: devices, streams, events and memory of
// GPUs, for taeda/cuda.
#include <taeda/aten/core/memory.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/core/gpu.h>
#include <taeda/c10/core/strides.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/lent.h>

namespace taeda::python {

namespace {

using Release = py::call_guard<py::gil_scoped_release>;

// Owned by its Python object.
class GpuEvent {
 public:
  GpuEvent(int device, bool timing, bool blocking)
      : event_(gpu().new_event(device, timing, blocking)) {}
  ~GpuEvent() { gpu().free_event(event_); }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;
  void* get() const { return event_; }

 private:
  void* event_;
};

py::dict describe(int device) {
  GpuProperties p = gpu().properties(device);
  py::dict out;
  out["name"] = p.name;
  out["major"] = p.major;
  out["minor"] = p.minor;
  out["total_memory"] = p.total_memory;
  out["multi_processor_count"] = p.multiprocessors;
  out["warp_size"] = p.warp_size;
  out["max_threads_per_multi_processor"] = p.max_threads_per_multiprocessor;
  out["max_threads_per_block"] = p.max_threads_per_block;
  out["regs_per_multiprocessor"] = p.registers_per_multiprocessor;
  out["shared_memory_per_block"] = p.shared_per_block;
  out["shared_memory_per_block_optin"] = p.shared_per_block_optin;
  out["shared_memory_per_multiprocessor"] = p.shared_per_multiprocessor;
  out["L2_cache_size"] = p.l2_cache;
  out["clock_rate"] = p.clock_rate;
  out["memory_clock_rate"] = p.memory_clock_rate;
  out["memory_bus_width"] = p.memory_bus_width;
  out["pci_domain_id"] = p.pci_domain;
  out["pci_bus_id"] = p.pci_bus;
  out["pci_device_id"] = p.pci_device;
  out["is_integrated"] = p.integrated;
  out["is_multi_gpu_board"] = p.multi_gpu_board;
  out["uuid"] = py::bytes(reinterpret_cast<const char*>(p.uuid.data()), 16);
  return out;
}

// (name, [(current, peak, allocated, freed) of all, small, large]), and counts.
py::dict stats(int device) {
  GpuMemoryStats s = gpu().memory_stats(device);
  py::dict out;
  auto put = [&](const char* name, const GpuMemoryStats::Pools& pools) {
    py::list rows;
    for (const GpuCount& c : pools) {
      rows.append(py::make_tuple(c.current, c.peak, c.taken, c.freed));
    }
    out[name] = rows;
  };
  put("allocated_bytes", s.allocated_bytes);
  put("reserved_bytes", s.reserved_bytes);
  put("active_bytes", s.active_bytes);
  put("requested_bytes", s.requested_bytes);
  put("allocation", s.allocations);
  put("segment", s.segments);
  put("active", s.active_blocks);
  out["num_alloc_retries"] = s.retries;
  out["num_ooms"] = s.out_of_memory;
  out["num_device_alloc"] = s.device_allocations;
  out["num_device_free"] = s.device_frees;
  return out;
}

py::dict describe(const GpuBlock& block) {
  py::dict out;
  out["address"] = block.address;
  out["size"] = block.size;
  out["requested_size"] = block.requested;
  out["state"] = block.used    ? "active_allocated"
                 : block.waits ? "active_pending_free"
                               : "inactive";
  out["origin"] = block.origin;
  return out;
}

py::list segments() {
  py::list all;
  for (const GpuSegment& s : gpu().segments()) {
    py::dict out;
    out["device"] = s.stream.device;
    out["stream"] = s.stream.id;
    out["address"] = s.address;
    out["total_size"] = s.size;
    out["segment_type"] = s.large ? "large" : "small";
    out["is_expandable"] = s.expandable;
    size_t allocated = 0, active = 0, requested = 0;
    py::list blocks;
    for (const GpuBlock& b : s.blocks) {
      allocated += b.used ? b.size : 0;
      requested += b.used ? b.requested : 0;
      active += b.used || b.waits ? b.size : 0;
      blocks.append(describe(b));
    }
    out["allocated_size"] = allocated;
    out["active_size"] = active;
    out["requested_size"] = requested;
    out["blocks"] = blocks;
    all.append(out);
  }
  return all;
}

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
      .def(py::init<int, bool, bool>())
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

void bind_memory(py::module_& m) {
  m.def("memory_stats", stats);
  m.def("segments", segments);
  m.def("reset_peak", [](int device) { gpu().reset_peak(device); });
  m.def("reset_totals", [](int device) { gpu().reset_totals(device); });
  m.def("memory_fraction",
        [](int device) { return gpu().memory_fraction(device); });
  m.def("empty_cache", [] { gpu().empty_cache(); }, Release());
  m.def("memory_info", [](int device) {
    auto [free, total] = gpu().memory_info(device);
    return py::make_tuple(free, total);
  });
  m.def("set_memory_fraction", [](double fraction, int device) {
    gpu().set_memory_fraction(fraction, device);
  });
  m.def("record_stream", [](const TensorBase& t, int device, int64_t id) {
    if (t.storage()) {
      gpu().record_stream(t.storage()->data(), {device, id});
    }
  });
}

// Page-locked memory for the elements of a tensor of the CPU, row-major; empty
// tensors have none to lock.
TensorBase pinned_like(const TensorBase& t) {
  TAEDA_CHECK(t.is_cpu(),
              "cannot pin '",
              t.device(),
              "' tensors: only dense CPU tensors can be pinned");
  size_t bytes = t.nbytes();
  void* data = gpu().allocate_host(bytes);
  auto free = [](void* block, size_t) { gpu().free_host(block); };
  DimVector strides = strides::contiguous<int64_t>(t.sizes());
  return over_memory(
      DataPtr{data, data, free}, bytes, t.dtype(), t.sizes(), strides);
}

bool is_pinned(const TensorBase& t) {
  if (!gpu_is_loaded() || gpu_is_lost_in_fork() || !t.is_cpu()) return false;
  return t.storage() && gpu().is_pinned(t.storage()->data());
}

void set_product_precision(bool tf32, bool half_sums, bool bfloat16_sums) {
  settings::product_tf32 = tf32;
  settings::half_sums = half_sums;
  settings::bfloat16_sums = bfloat16_sums;
}

void bind_pinned(py::module_& m) {
  m.def("pinned_like", pinned_like);
  m.def("is_pinned", is_pinned);
}

}  // namespace

}  // namespace taeda::python

PYBIND11_MODULE(_cuda, m) {
  using namespace taeda;
  using namespace taeda::python;
  borrow_from_native();
  m.def("is_loaded", gpu_is_loaded);
  m.def("is_lost_in_fork", gpu_is_lost_in_fork);
  m.def("add_library_folder",
        [](const std::string& f) { gpu().add_library_folder(f); });
  m.def("driver_version", [] { return gpu().driver_version(); });
  m.def("device_count", [] { return gpu().device_count(); });
  m.def("current_device", [] { return gpu().current_device(); });
  m.def("set_device", [](int device) { gpu().set_device(device); });
  m.def(
      "synchronize", [](int device) { gpu().synchronize(device); }, Release());
  m.def("properties", [](int device) { return describe(device); });
  m.def("can_access_peer", [](int device, int peer) {
    return gpu().can_access_peer(device, peer);
  });
  m.def("default_generator", [](int device) {
    return owned(wrap(gpu().default_generator(device)));
  });
  m.def("set_product_precision", set_product_precision);
  m.def("exchange_multithreading", [](bool on) {
    return std::exchange(local_state.multithreading_enabled, on);
  });
  bind_streams(m);
  bind_memory(m);
  bind_pinned(m);
}
