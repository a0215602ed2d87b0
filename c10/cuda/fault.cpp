#include <taeda/c10/cuda/fault.h>

#include <taeda/c10/cuda/memory.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

namespace taeda::cuda {

namespace {

// Of each device, null until a kernel is given it. Filled under host memory's
// lock by whoever comes first, and kept.
std::atomic<Fault*>& slot_of(int device) {
  static auto& all = *new std::vector<std::atomic<Fault*>>(
      static_cast<size_t>(std::max(device_count(), 1)));
  check_device("fault", device);
  return all[static_cast<size_t>(device)];
}

}  // namespace

Fault* fault_of(int device) {
  std::atomic<Fault*>& slot = slot_of(device);
  if (Fault* known = slot.load(std::memory_order_acquire)) return known;
  auto* made = new (allocate_host(sizeof(Fault))) Fault;
  Fault* before = nullptr;
  if (slot.compare_exchange_strong(before, made)) return made;
  free_host(made);
  return before;
}

void check_fault(int device) {
  Fault* fault = slot_of(device).load(std::memory_order_acquire);
  if (TAEDA_LIKELY(fault == nullptr)) return;
  std::atomic_ref<uint32_t> written(fault->written);
  uint32_t expected = 1;
  // Of several threads that wait, one raises.
  if (!written.compare_exchange_strong(expected, 0)) return;
  Fault found = *fault;
  std::atomic_ref<uint32_t>(fault->taken).store(0);
  throw_error(ErrorKind::Runtime,
              str_cat("CUDA error: device-side assert triggered: ",
                      found.op,
                      ": index ",
                      found.index,
                      " is out of bounds for a dimension with size ",
                      found.size,
                      " (on cuda:",
                      device,
                      ", in a kernel that was started before)"));
}

}  // namespace taeda::cuda
