// Pools, allocators, settings and history of devices' memory.
#include <taeda/c10/core/gpu_parts.h>
#include <taeda/csrc/gpu/bind.h>

namespace taeda::python {

namespace {

const char* name_of(GpuMemoryAction::Kind kind) {
  constexpr const char* kNames[] = {"alloc",
                                    "free_requested",
                                    "free_completed",
                                    "segment_alloc",
                                    "segment_free",
                                    "segment_map",
                                    "segment_unmap",
                                    "oom"};
  return kNames[kind];
}

// Dicts for each device, oldest first.
py::list history() {
  py::list devices;
  for (const auto& actions : gpu().pools().history()) {
    py::list out;
    for (const GpuMemoryAction& a : actions) {
      py::dict entry;
      entry["action"] = name_of(a.kind);
      if (a.kind != GpuMemoryAction::OutOfMemory) entry["addr"] = a.address;
      entry["size"] = a.size;
      entry["stream"] = a.stream.id;
      entry["pool_id"] = py::make_tuple(0, a.pool);
      entry["time_us"] = a.microseconds;
      entry["origin"] = a.origin;
      out.append(entry);
    }
    devices.append(out);
  }
  return devices;
}

py::tuple time_row(const GpuHostStats::Time& t) {
  return py::make_tuple(t.total, t.most, t.least, t.calls);
}

// (counts, times)
py::tuple host_stats() {
  GpuHostStats s = gpu().pools().host_stats();
  py::dict counts, times;
  counts["allocations"] = row(s.blocks);
  counts["allocated_bytes"] = row(s.bytes);
  counts["active_requests"] = row(s.used_blocks);
  counts["active_bytes"] = row(s.used_bytes);
  times["host_alloc_time"] = time_row(s.locking);
  times["host_free_time"] = time_row(s.unlocking);
  return py::make_tuple(counts, times);
}

void bind_own_pools(py::module_& m) {
  m.def("new_plug_in", [](uintptr_t allocate, uintptr_t free) {
    return reinterpret_cast<uintptr_t>(gpu().pools().new_plug_in(
        reinterpret_cast<void*>(allocate), reinterpret_cast<void*>(free)));
  });
  m.def("change_allocator", [](uintptr_t plug_in) {
    gpu().pools().change_allocator(reinterpret_cast<const void*>(plug_in));
  });
  m.def("changed_allocator", [] {
    return reinterpret_cast<uintptr_t>(gpu().pools().changed_allocator());
  });
  m.def("new_pool", [](uintptr_t plug_in, bool use_on_oom, bool no_split) {
    return gpu().pools().new_pool(
        reinterpret_cast<const void*>(plug_in), use_on_oom, no_split);
  });
  m.def("retain_pool", [](PoolId pool) { gpu().pools().retain(pool); });
  m.def(
      "release_pool",
      [](PoolId pool) { gpu().pools().release(pool); },
      Release());
  m.def("users_of_pool", [](PoolId pool) { return gpu().pools().users(pool); });
  m.def("use_pool", [](int device, PoolId pool) {
    return gpu().pools().use(device, pool);
  });
}

}  // namespace

void bind_pools(py::module_& m) {
  bind_own_pools(m);
  m.def("set_memory_options",
        [](const std::string& text) { gpu().pools().set_options(text); });
  m.def("memory_options", [] { return gpu().pools().options(); });
  m.def("record_history", [](size_t most, bool origins) {
    gpu().pools().record_history(most, origins);
  });
  m.def("history", history);
  m.def("allocate", [](size_t bytes, int device, int64_t stream) {
    return gpu().pools().allocate(bytes, {device, stream});
  });
  m.def("free", [](uint64_t address) { gpu().pools().free(address); });
  m.def("host_stats", host_stats);
  m.def("reset_host_peak", [] { gpu().pools().reset_host_peak(); });
  m.def("reset_host_totals", [] { gpu().pools().reset_host_totals(); });
  m.def(
      "empty_host_cache", [] { gpu().pools().empty_host_cache(); }, Release());
}

}  // namespace taeda::python
