// Memory of devices, and page-locked memory.
#include <taeda/aten/core/memory.h>
#include <taeda/c10/core/gpu.h>
#include <taeda/c10/core/strides.h>
#include <taeda/csrc/gpu/bind.h>

namespace taeda::python {

namespace {

// (name, [(current, peak, allocated, freed) of all, small, large]), the same of
// what is not told apart by size, and counts.
py::dict stats(int device) {
  GpuMemoryStats s = gpu().memory_stats(device);
  py::dict out;
  auto put = [&](const char* name, const GpuMemoryStats::Pools& pools) {
    py::list rows;
    for (const GpuCount& c : pools) {
      rows.append(row(c));
    }
    out[name] = rows;
  };
  put("allocated_bytes", s.allocated_bytes);
  put("reserved_bytes", s.reserved_bytes);
  put("active_bytes", s.active_bytes);
  put("requested_bytes", s.requested_bytes);
  put("inactive_split_bytes", s.inactive_split_bytes);
  put("allocation", s.allocations);
  put("segment", s.segments);
  put("active", s.active_blocks);
  put("inactive_split", s.inactive_split);
  out["oversize_allocations"] = row(s.oversize_allocations);
  out["oversize_segments"] = row(s.oversize_segments);
  out["num_alloc_retries"] = s.retries;
  out["num_ooms"] = s.out_of_memory;
  out["num_device_alloc"] = s.device_allocations;
  out["num_device_free"] = s.device_frees;
  out["num_sync_all_streams"] = s.synchronizations;
  out["max_split_size"] = s.max_split_size;
  return out;
}

py::dict describe(const GpuBlock& block) {
  py::dict out;
  out["address"] = block.address;
  out["size"] = block.size;
  out["requested_size"] = block.requested;
  out["state"] = block.used    ? "active_allocated"
                 : block.waits ? "active_awaiting_free"
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
    out["segment_pool_id"] = py::make_tuple(0, s.pool);
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

}  // namespace

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
  m.def("pinned_like", pinned_like);
  m.def("is_pinned", is_pinned);
}

}  // namespace taeda::python
