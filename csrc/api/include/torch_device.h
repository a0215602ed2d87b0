// A device of a program's own, in the notation of PyTorch's C++ programs:
// c10::Allocator, c10::impl::DeviceGuardImplInterface and
// at::PrivateUse1HooksInterface, which become the interface that the library
// asks (Note [Devices of programs] in <taeda/c10/core/program_device.h>).
#pragma once

#include <taeda/aten/native/cpu_fallback.h>
#include <taeda/c10/core/program_device.h>
#include <taeda/torch_library.h>

#include <memory>

namespace taeda::front {

using DeviceIndex = int8_t;
using StreamId = int64_t;
using DeleterFnPtr = void (*)(void*);

inline void register_privateuse1_backend(const std::string& name) {
  rename_privateuse1(name);
}
inline std::string get_privateuse1_backend(bool = true) {
  return std::string(privateuse1_name());
}
inline bool is_privateuse1_backend_registered() {
  return get_privateuse1_backend() != "privateuseone";
}

// Memory
// -----------------------------------------------------------------------

// A block with who frees it.
class DataPtr {
 public:
  DataPtr() = default;
  DataPtr(void* data, Device device) : data_(data), device_(device) {}
  DataPtr(void* data, void* context, DeleterFnPtr deleter, Device device)
      : data_(data),
        context_(context, deleter == nullptr ? &nothing : deleter),
        device_(device) {}
  void* get() const { return data_; }
  void* get_context() const { return context_.get(); }
  DeleterFnPtr get_deleter() const { return context_.get_deleter(); }
  void* release_context() { return context_.release(); }
  Device device() const { return device_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  static void nothing(void*) {}
  void* data_ = nullptr;
  std::unique_ptr<void, DeleterFnPtr> context_{nullptr, &nothing};
  Device device_{DeviceType::CPU};
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // On the current device; null data for 0 bytes.
  virtual DataPtr allocate(size_t n) = 0;
  virtual DeleterFnPtr raw_deleter() const { return nullptr; }
  // Within the device, in the order of its current stream.
  virtual void copy_data(void* dest, const void* src, size_t count) const = 0;
};

// The same as the library sees it. It counts what is taken.
class LibraryAllocator final : public ::taeda::Allocator {
 public:
  explicit LibraryAllocator(front::Allocator& allocator)
      : allocator_(allocator) {}
  ::taeda::DataPtr allocate(size_t n) override {
    if (n == 0) return {};
    DataPtr taken = allocator_.allocate(n);
    TAEDA_CHECK_AS(OutOfMemory,
                   taken.get() != nullptr,
                   taken.device(),
                   ": can't allocate memory: you tried to allocate ",
                   n,
                   " bytes");
    void* data = taken.get();
    ++stats_->allocations;
    int64_t now = stats_->allocated += static_cast<int64_t>(n);
    int64_t peak = stats_->peak;
    while (now > peak && !stats_->peak.compare_exchange_weak(peak, now)) {
    }
    return {data, new Held{std::move(taken), *stats_}, &free};
  }
  AllocatorStats stats() const override {
    return {stats_->allocated, stats_->peak, 0, stats_->allocations};
  }
  void reset_peak() override { stats_->peak = stats_->allocated.load(); }
  const front::Allocator& inner() const { return allocator_; }

 private:
  struct Stats {
    std::atomic<int64_t> allocated{0}, peak{0}, allocations{0};
  };
  struct Held {
    DataPtr memory;
    Stats& stats;
  };
  static void free(void* context, size_t n) {
    std::unique_ptr<Held> held(static_cast<Held*>(context));
    held->stats.allocated -= static_cast<int64_t>(n);
  }
  front::Allocator& allocator_;
  // Outlives the blocks.
  Stats* stats_ = new Stats;
};

// Streams and events
// -----------------------------------------------------------

class Stream {
 public:
  enum Unsafe { UNSAFE };
  enum Default { DEFAULT };
  Stream(Unsafe, Device device, StreamId id) : device_(device), id_(id) {}
  Stream(Default, Device device) : device_(device) {}
  explicit Stream(GpuStream s)
      : device_(DeviceType::PrivateUse1, static_cast<DeviceIndex>(s.device)),
        id_(s.id) {}
  Device device() const { return device_; }
  DeviceType device_type() const { return device_.type(); }
  DeviceIndex device_index() const { return device_.index(); }
  StreamId id() const { return id_; }
  bool operator==(const Stream& o) const {
    return device_ == o.device_ && id_ == o.id_;
  }
  GpuStream plain() const { return {device_.index(), id_}; }

 private:
  Device device_;
  StreamId id_ = 0;
};

enum class EventFlag { PYTORCH_DEFAULT, BACKEND_DEFAULT, INVALID };

// What a device must have, and what it may leave out, with PyTorch's errors.
class DeviceGuardImplInterface {
 public:
  virtual ~DeviceGuardImplInterface() = default;
  virtual DeviceType type() const = 0;
  virtual Device exchangeDevice(Device device) const = 0;
  virtual Device getDevice() const = 0;
  virtual void setDevice(Device device) const = 0;
  virtual void uncheckedSetDevice(Device device) const noexcept = 0;
  virtual Stream getStream(Device device) const = 0;
  virtual Stream getDefaultStream(Device) const { refuse("getDefaultStream"); }
  virtual Stream getNewStream(Device, int = 0) const { refuse("new streams"); }
  virtual Stream exchangeStream(Stream stream) const = 0;
  virtual DeviceIndex deviceCount() const noexcept = 0;

  virtual void record(void**,
                      const Stream&,
                      const DeviceIndex,
                      const EventFlag) const {
    refuse("events");
  }
  virtual void block(void*, const Stream&) const { refuse("events"); }
  virtual bool queryEvent(void*) const { refuse("events"); }
  virtual void synchronizeEvent(void*) const { refuse("events"); }
  virtual void destroyEvent(void*, const DeviceIndex) const noexcept {}
  virtual double elapsedTime(void*, void*, const DeviceIndex) const {
    refuse("elapsedTime");
  }
  virtual bool queryStream(const Stream&) const { refuse("querying streams"); }
  virtual void synchronizeStream(const Stream&) const {
    refuse("synchronizing streams");
  }
  virtual void synchronizeDevice(const DeviceIndex) const {
    refuse("synchronizing all streams on a device");
  }
  virtual void recordDataPtrOnStream(const Storage&, const Stream&) const {}

 protected:
  [[noreturn]] static void refuse(std::string_view what) {
    throw_error(
        ErrorKind::NotImplemented,
        str_cat(privateuse1_name(), ": backend doesn't support ", what));
  }
};

// What else a device may have.
class PrivateUse1HooksInterface {
 public:
  virtual ~PrivateUse1HooksInterface() = default;
  virtual const Generator& getDefaultGenerator(DeviceIndex = -1) const {
    refuse("getDefaultGenerator");
  }
  virtual Generator getNewGenerator(DeviceIndex = -1) const {
    refuse("getNewGenerator");
  }
  virtual bool isAvailable() const { return true; }
  virtual bool hasPrimaryContext(DeviceIndex) const { return true; }
  virtual Allocator* getPinnedMemoryAllocator() const { return nullptr; }
  virtual bool isPinnedPtr(const void*) const { return false; }
  virtual void init() const {}

 protected:
  [[noreturn]] static void refuse(std::string_view what) {
    throw_error(ErrorKind::NotImplemented,
                str_cat(privateuse1_name(), ": ", what, " is not implemented"));
  }
};

// All three as the interface that the library asks.
class AdaptedDevice final : public ProgramDevice {
 public:
  // Of this extension. Registered with the first part that it gets.
  static AdaptedDevice& get() {
    static AdaptedDevice& adapted = []() -> AdaptedDevice& {
      auto& made = *new AdaptedDevice;
      register_program_device(made);
      return made;
    }();
    return adapted;
  }

  const DeviceGuardImplInterface* guard = nullptr;
  const PrivateUse1HooksInterface* hooks = nullptr;
  LibraryAllocator* memory = nullptr;

  int device_count() override {
    bool there = guard != nullptr && (hooks == nullptr || hooks->isAvailable());
    return there ? guard->deviceCount() : 0;
  }
  int current_device() override {
    return guard == nullptr ? 0 : guard->getDevice().index();
  }
  void set_device(int device) override { its_guard().setDevice(at(device)); }
  void synchronize(int device) override {
    its_guard().synchronizeDevice(static_cast<DeviceIndex>(device));
  }

  GpuStream current_stream(int device) override {
    return its_guard().getStream(at(device)).plain();
  }
  void set_stream(GpuStream s) override {
    its_guard().exchangeStream(Stream(s));
  }
  GpuStream new_stream(int device, int priority) override {
    return its_guard().getNewStream(at(device), priority).plain();
  }
  bool query(GpuStream s) override {
    return its_guard().queryStream(Stream(s));
  }
  void wait(GpuStream s) override { its_guard().synchronizeStream(Stream(s)); }

  void record(void** event, GpuStream s, bool timing) override {
    its_guard().record(
        event,
        Stream(s),
        static_cast<DeviceIndex>(s.device),
        timing ? EventFlag::BACKEND_DEFAULT : EventFlag::PYTORCH_DEFAULT);
  }
  void free_event(void* event, int device) override {
    its_guard().destroyEvent(event, static_cast<DeviceIndex>(device));
  }
  void wait(GpuStream s, void* event) override {
    its_guard().block(event, Stream(s));
  }
  bool query_event(void* event) override {
    return its_guard().queryEvent(event);
  }
  void wait_event(void* event) override { its_guard().synchronizeEvent(event); }
  double milliseconds(void* from, void* to, int device) override {
    return its_guard().elapsedTime(from, to, static_cast<DeviceIndex>(device));
  }

  void record_stream(const Storage& storage, GpuStream s) override {
    its_guard().recordDataPtrOnStream(storage, Stream(s));
  }
  void copy_bytes(void* to, const void* from, size_t bytes) override {
    TAEDA_CHECK(memory != nullptr, privateuse1_name(), ": no allocator is set");
    memory->inner().copy_data(to, from, bytes);
  }
  ::taeda::Allocator* host_allocator() override {
    front::Allocator* found = its_hooks().getPinnedMemoryAllocator();
    if (found == nullptr) return nullptr;
    static LibraryAllocator& host = *new LibraryAllocator(*found);
    return &host;
  }
  bool is_pinned(const void* data) override {
    return hooks != nullptr && hooks->isPinnedPtr(data);
  }

  Generator default_generator(int device) override {
    return its_hooks().getDefaultGenerator(static_cast<DeviceIndex>(device));
  }
  Generator new_generator(int device) override {
    return its_hooks().getNewGenerator(static_cast<DeviceIndex>(device));
  }

 private:
  static Device at(int device) {
    return {DeviceType::PrivateUse1, static_cast<DeviceIndex>(device)};
  }
  const DeviceGuardImplInterface& its_guard() const {
    TAEDA_CHECK(guard != nullptr,
                privateuse1_name(),
                ": no device guard is registered (C10_REGISTER_GUARD_IMPL)");
    return *guard;
  }
  const PrivateUse1HooksInterface& its_hooks() const {
    TAEDA_CHECK(hooks != nullptr,
                privateuse1_name(),
                ": no hooks are registered "
                "(RegisterPrivateUse1HooksInterface)");
    return *hooks;
  }
};

// Of the program's device alone; the allocator lives on.
inline void SetAllocator(DeviceType type, Allocator* allocator, uint8_t = 0) {
  TAEDA_CHECK_AS(NotImplemented,
                 type == DeviceType::PrivateUse1,
                 "SetAllocator: expected the device of a program, got ",
                 device_type_name(type));
  auto* memory = new LibraryAllocator(*allocator);
  AdaptedDevice::get().memory = memory;
  set_allocator(type, memory);
}
inline void RegisterPrivateUse1HooksInterface(
    PrivateUse1HooksInterface* hooks) {
  AdaptedDevice::get().hooks = hooks;
}
inline bool isPrivateUse1HooksRegistered() {
  return AdaptedDevice::get().hooks != nullptr;
}
inline bool register_guard(const DeviceGuardImplInterface* guard) {
  AdaptedDevice::get().guard = guard;
  return true;
}

// Makes a device the current one for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) : current_(device) {}

 private:
  CurrentDevice current_;
};
class OptionalDeviceGuard {
 public:
  OptionalDeviceGuard() = default;
  explicit OptionalDeviceGuard(std::optional<Device> device) {
    if (device) current_.emplace(*device);
  }
  void reset_device(Device device) { current_.emplace(device); }

 private:
  std::optional<CurrentDevice> current_;
};

}  // namespace taeda::front

namespace c10 {
using ::taeda::front::DataPtr;
using ::taeda::front::DeviceGuard;
using ::taeda::front::DeviceIndex;
using ::taeda::front::EventFlag;
using ::taeda::front::get_privateuse1_backend;
using ::taeda::front::is_privateuse1_backend_registered;
using ::taeda::front::OptionalDeviceGuard;
using ::taeda::front::register_privateuse1_backend;
using ::taeda::front::SetAllocator;
using ::taeda::front::Stream;
using ::taeda::front::StreamId;
using Allocator = ::taeda::front::Allocator;
using DeleterFnPtr = ::taeda::front::DeleterFnPtr;
namespace impl {
using ::taeda::front::DeviceGuardImplInterface;
}
}  // namespace c10
namespace at {
using ::taeda::front::DataPtr;
using ::taeda::front::DeviceGuard;
using ::taeda::front::isPrivateUse1HooksRegistered;
using ::taeda::front::OptionalDeviceGuard;
using ::taeda::front::PrivateUse1HooksInterface;
using ::taeda::front::RegisterPrivateUse1HooksInterface;
using Allocator = ::taeda::front::Allocator;
namespace native {
inline void cpu_fallback(const c10::OperatorHandle& op,
                         torch::jit::Stack* stack,
                         bool /*error_on_views*/ = false) {
  ::taeda::native::cpu_fallback(op.entry(), *stack);
}
}  // namespace native
}  // namespace at

#define C10_REGISTER_GUARD_IMPL(device, implementation)                \
  static_assert(                                                       \
      ::taeda::DeviceType::device == ::taeda::DeviceType::PrivateUse1, \
      "a program can add the device PrivateUse1");                     \
  static const bool taeda_guard_of_##device =                          \
      ::taeda::front::register_guard(new implementation())
#define REGISTER_ALLOCATOR(type, allocator)          \
  static const bool taeda_allocator_of_device = [] { \
    ::taeda::front::SetAllocator(type, allocator);   \
    return true;                                     \
  }()
