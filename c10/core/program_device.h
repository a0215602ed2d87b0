// The device that a program adds (DeviceType::PrivateUse1): what the library
// asks of it. PyTorch's interface for that is <taeda/torch_device.h>.
#pragma once

#include <taeda/c10/core/gpu.h>
#include <taeda/c10/core/storage.h>

#include <string_view>

namespace taeda {

// Note [Devices of programs]
// A program registers an interface (here), an allocator (set_allocator) and
// kernels (Library, key PrivateUse1). Composites, views and what allocates run
// for its tensors as for all devices. Copies call its kernel of
// `_copy_from(self, dst, non_blocking)`; all other operators without a kernel
// of its own are refused by name, or are computed by the CPU where the program
// chose that (native::cpu_fallback) for one operator or for the rest of them.
// Its tensors lie on the device that was current when they were made, unless
// the call names one. Streams are GpuStream's: a device and a number, 0 being
// the default one.
class TAEDA_API ProgramDevice {
 public:
  virtual ~ProgramDevice() = default;

  virtual int device_count() = 0;
  virtual int current_device() = 0;
  virtual void set_device(int device) = 0;
  virtual void synchronize(int device) = 0;

  virtual GpuStream current_stream(int device) = 0;
  virtual void set_stream(GpuStream stream) = 0;
  virtual GpuStream new_stream(int device, int priority) = 0;
  virtual bool query(GpuStream stream) = 0;
  virtual void wait(GpuStream stream) = 0;

  // `event` is null before the first record, which makes one.
  virtual void record(void** event, GpuStream stream, bool timing) = 0;
  virtual void free_event(void* event, int device) = 0;
  virtual void wait(GpuStream stream, void* event) = 0;
  virtual bool query_event(void* event) = 0;
  virtual void wait_event(void* event) = 0;
  virtual double milliseconds(void* from, void* to, int device) = 0;

  // Memory that `stream` uses too; it is freed once that has ended.
  virtual void record_stream(const Storage& storage, GpuStream stream) = 0;
  // Within one device, in the order of its current stream.
  virtual void copy_bytes(void* to, const void* from, size_t bytes) = 0;
  // Of page-locked memory of the host; null where there is none.
  virtual Allocator* host_allocator() = 0;
  virtual bool is_pinned(const void* data) = 0;

  virtual Generator default_generator(int device) = 0;
  virtual Generator new_generator(int device) = 0;
};

// Once, before tensors are made; it lives on. RuntimeError for a second one.
TAEDA_API void register_program_device(ProgramDevice& device);
// Null where no program has registered one.
TAEDA_API ProgramDevice* program_device_or_null();
// RuntimeError naming the device where there is none.
TAEDA_API ProgramDevice& program_device();

// What the device of programs calls itself.
TAEDA_API std::string_view privateuse1_name();

// Makes a device the thread's current one of its kind for a while: one of CUDA
// or of the program.
class TAEDA_API CurrentDevice {
 public:
  explicit CurrentDevice(Device device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  GpuGuard gpu_;
  int before_ = -1;
};

// `device` with the number of the current one, where it has none and there are
// several of its kind.
TAEDA_API Device with_current_index(Device device);
// A generator of the device; RuntimeError where it has none.
TAEDA_API Generator make_generator(Device device);

}  // namespace taeda
