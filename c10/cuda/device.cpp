#include <taeda/c10/cuda/device.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>

namespace taeda::cuda {

namespace {

// What is known of a device; made once, under the lock, and then constant.
struct DeviceState {
  int handle = 0;
  std::once_flag opened;
  ContextHandle context = nullptr;
  std::once_flag described;
  GpuProperties properties;
};

struct Devices {
  int count = 0;
  std::vector<DeviceState> list;
};

// Contexts do not survive a fork: the child may not touch what it inherits.
std::atomic<bool> opened{false};
std::atomic<bool> lost_in_fork{false};

Devices find_devices() {
  Devices found;
  check(driver().device_count(&found.count), "cuDeviceGetCount");
  found.list = std::vector<DeviceState>(static_cast<size_t>(found.count));
  for (int i = 0; i < found.count; ++i) {
    int* handle = &found.list[static_cast<size_t>(i)].handle;
    check(driver().device_get(handle, i), "cuDeviceGet");
  }
  pthread_atfork(nullptr, nullptr, [] {
    if (opened.load()) lost_in_fork.store(true);
  });
  return found;
}

Devices& devices() {
  static Devices& all = *new Devices(find_devices());
  return all;
}

DeviceState& state_of(int device) {
  check_device("CUDA", device);
  return devices().list[static_cast<size_t>(device)];
}

// The device that calls of this thread are for, and the one whose context the
// driver has as the thread's.
thread_local int current = 0;
thread_local int in_context = -1;

GpuProperties describe(int device, int handle) {
  GpuProperties p;
  char name[256] = {};
  check(driver().device_name(name, sizeof(name), handle), "cuDeviceGetName");
  p.name = name;
  check(driver().total_memory(&p.total_memory, handle), "cuDeviceTotalMem");
  Uuid uuid{};
  check(driver().device_uuid(&uuid, handle), "cuDeviceGetUuid");
  std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), p.uuid.begin());
  auto get = [&](Attribute a) { return attribute_of(device, a); };
  p.major = get(Attribute::Major);
  p.minor = get(Attribute::Minor);
  p.multiprocessors = get(Attribute::Multiprocessors);
  p.warp_size = get(Attribute::WarpSize);
  p.max_threads_per_multiprocessor =
      get(Attribute::MaxThreadsPerMultiprocessor);
  p.max_threads_per_block = get(Attribute::MaxThreadsPerBlock);
  p.registers_per_multiprocessor = get(Attribute::RegistersPerMultiprocessor);
  p.shared_per_block = static_cast<size_t>(get(Attribute::SharedPerBlock));
  p.shared_per_block_optin =
      static_cast<size_t>(get(Attribute::SharedPerBlockOptin));
  p.shared_per_multiprocessor =
      static_cast<size_t>(get(Attribute::SharedPerMultiprocessor));
  p.l2_cache = static_cast<size_t>(get(Attribute::L2CacheSize));
  p.clock_rate = get(Attribute::ClockRate);
  p.memory_clock_rate = get(Attribute::MemoryClockRate);
  p.memory_bus_width = get(Attribute::MemoryBusWidth);
  p.pci_domain = get(Attribute::PciDomain);
  p.pci_bus = get(Attribute::PciBus);
  p.pci_device = get(Attribute::PciDevice);
  p.integrated = get(Attribute::Integrated) != 0;
  p.multi_gpu_board = get(Attribute::MultiGpuBoard) != 0;
  return p;
}

}  // namespace

int device_count() { return devices().count; }

void check_device(const char* what, int device) {
  TAEDA_CHECK(device >= 0 && device < device_count(),
              what,
              ": CUDA error: invalid device ordinal ",
              device,
              ", there are ",
              device_count());
}

int attribute_of(int device, Attribute which) {
  int value = 0;
  check(driver().attribute(&value, which, state_of(device).handle),
        "cuDeviceGetAttribute");
  return value;
}

const GpuProperties& properties_of(int device) {
  DeviceState& state = state_of(device);
  std::call_once(state.described,
                 [&] { state.properties = describe(device, state.handle); });
  return state.properties;
}

ContextHandle context_of(int device) {
  TAEDA_CHECK(!lost_in_fork.load(std::memory_order_relaxed),
              "Cannot re-initialize CUDA in forked subprocess. To use CUDA "
              "with multiprocessing, you must use the 'spawn' start method");
  DeviceState& state = state_of(device);
  std::call_once(state.opened, [&] {
    check(driver().context_retain(&state.context, state.handle),
          "cuDevicePrimaryCtxRetain");
    opened.store(true);
  });
  return state.context;
}

int current_device() { return current; }

void set_device(int device) {
  check_device("set_device", device);
  current = device;
}

void use_context() { use_context(current); }

void use_context(int device) {
  if (TAEDA_LIKELY(in_context == device &&
                   !lost_in_fork.load(std::memory_order_relaxed))) {
    return;
  }
  check(driver().context_set(context_of(device)), "cuCtxSetCurrent");
  in_context = device;
}

}  // namespace taeda::cuda
