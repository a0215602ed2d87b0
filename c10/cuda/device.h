// Devices and their primary contexts, and the current one of each thread.
#pragma once

#include <taeda/c10/core/gpu.h>
#include <taeda/c10/cuda/driver.h>

namespace taeda::cuda {

// RuntimeError where there is no driver.
int device_count();
int current_device();
// RuntimeError "invalid device ordinal" for one that is not there.
void set_device(int device);
// Makes the current device's context the thread's: before each call of the
// driver that counts on one.
void use_context();
void use_context(int device);
ContextHandle context_of(int device);
int attribute_of(int device, Attribute which);
const GpuProperties& properties_of(int device);
void check_device(const char* what, int device);

class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : before_(current_device()) {
    if (device != before_) set_device(device);
  }
  ~DeviceGuard() {
    if (current_device() != before_) set_device(before_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_;
};

}  // namespace taeda::cuda
