#include <taeda/c10/core/program_device.h>
#include <taeda/c10/util/check.h>

#include <atomic>

namespace taeda {

namespace {
// Written once, by whichever thread loads the program's library.
constinit std::atomic<ProgramDevice*> registered{nullptr};
}  // namespace

void register_program_device(ProgramDevice& device) {
  ProgramDevice* none = nullptr;
  TAEDA_CHECK(registered.compare_exchange_strong(none, &device),
              "a device was registered already for ",
              privateuse1_name(),
              ": a program can add one");
}

ProgramDevice* program_device_or_null() {
  return registered.load(std::memory_order_acquire);
}

ProgramDevice& program_device() {
  ProgramDevice* device = program_device_or_null();
  TAEDA_CHECK(device != nullptr,
              "no program has registered the device ",
              privateuse1_name());
  return *device;
}

CurrentDevice::CurrentDevice(Device device) : gpu_(device) {
  if (device.type != DeviceType::PrivateUse1 || !device.has_index()) return;
  ProgramDevice* program = program_device_or_null();
  if (program == nullptr) return;
  before_ = program->current_device();
  if (before_ == device.index) before_ = -1;
  if (before_ >= 0) program->set_device(device.index);
}

CurrentDevice::~CurrentDevice() {
  if (before_ >= 0) program_device().set_device(before_);
}

Device with_current_index(Device device) {
  if (device.has_index()) return device;
  if (device.is_cuda()) {
    device.index = static_cast<int8_t>(gpu().current_device());
  } else if (device.type == DeviceType::PrivateUse1) {
    ProgramDevice* program = program_device_or_null();
    int index = program == nullptr ? 0 : program->current_device();
    device.index = static_cast<int8_t>(index);
  }
  return device;
}

Generator make_generator(Device device) {
  if (device.is_cuda()) {
    return gpu().new_generator(with_current_index(device).index);
  }
  if (device.type == DeviceType::PrivateUse1) {
    return program_device().new_generator(with_current_index(device).index);
  }
  TAEDA_CHECK(device.is_cpu(),
              "Generator: no generator for device ",
              device,
              " (the CPU, CUDA and devices of programs have some)");
  return make_cpu_generator();
}

}  // namespace taeda
