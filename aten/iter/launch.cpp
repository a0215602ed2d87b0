#include <taeda/aten/iter/launch.h>
#include <taeda/aten/iter/program_launch.h>
#include <taeda/c10/core/program_device.h>

#include <atomic>

namespace taeda {

namespace {

constexpr Launchers kCpu{&native::launch_pointwise,
                         &native::launch_reduce,
                         &native::launch_copy,
                         &native::launch_fill};

constexpr int kDeviceTypes = static_cast<int>(DeviceType::PrivateUse1) + 1;

// By device type. A device's library writes its entry once, when it is loaded;
// atomic, because other threads may be calling operators meanwhile.
constinit std::atomic<const Launchers*> table[kDeviceTypes] = {&kCpu};
static_assert(static_cast<int>(DeviceType::CPU) == 0);

}  // namespace

const Launchers* launchers_or_null(DeviceType type) {
  return table[static_cast<int>(type)].load(std::memory_order_acquire);
}

const Launchers& launchers_of(const char* op, Device device) {
  const Launchers* found = launchers_or_null(device.type);
  if (found == nullptr && device.type == DeviceType::PrivateUse1 &&
      program_device_or_null() != nullptr) {
    return program_launchers();
  }
  TAEDA_CHECK_AS(
      NotImplemented, found != nullptr, op, ": no kernel for device ", device);
  return *found;
}

void set_launchers(DeviceType type, const Launchers* launchers) {
  table[static_cast<int>(type)].store(launchers, std::memory_order_release);
}

}  // namespace taeda
