// The extension module taeda._cuda: devices, streams, events and memory of
// GPUs, for taeda/cuda.
#include <taeda/aten/core/memory.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/core/gpu.h>
#include <taeda/csrc/gpu/bind.h>
#include <taeda/csrc/python/lent.h>

#include <algorithm>

namespace taeda::python {

namespace {

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

void set_product_precision(bool tf32, bool half_sums, bool bfloat16_sums) {
  settings::product_tf32 = tf32;
  settings::half_sums = half_sums;
  settings::bfloat16_sums = bfloat16_sums;
}

void set_convolution_choices(bool enabled,
                             bool benchmark,
                             int64_t benchmark_limit,
                             bool deterministic,
                             bool tf32) {
  settings::cudnn_enabled = enabled;
  settings::cudnn_benchmark = benchmark;
  settings::cudnn_benchmark_limit = std::max<int64_t>(benchmark_limit, 0);
  settings::cudnn_deterministic = deterministic;
  settings::convolution_tf32 = tf32;
}

void set_linalg_library(uint8_t preferred) {
  settings::linalg_library = preferred;
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
  m.def("set_convolution_choices", set_convolution_choices);
  m.def("set_linalg_library", set_linalg_library);
  m.def("fourier_plans", [](int d) { return gpu().fourier_plans(d); });
  m.def("most_fourier_plans",
        [](int d) { return gpu().most_fourier_plans(d); });
  m.def("set_most_fourier_plans",
        [](int d, int64_t n) { gpu().set_most_fourier_plans(d, n); });
  m.def("clear_fourier_plans", [](int d) { gpu().clear_fourier_plans(d); });
  m.def("cudnn_version", [] { return gpu().cudnn_version(); });
  m.def("exchange_multithreading", [](bool on) {
    return std::exchange(local_state.multithreading_enabled, on);
  });
  bind_streams(m);
  bind_memory(m);
  bind_pools(m);
  bind_graphs(m);
  bind_sharing(m);
  bind_program_device(m);
}
