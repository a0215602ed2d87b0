// The driver's functions, under their names.
#include "emulator.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

using namespace emulator;
using taeda::cuda::AccessRights;
using taeda::cuda::AllocationProperties;
using taeda::cuda::Attribute;
using taeda::cuda::IpcHandle;
using taeda::cuda::Uuid;

#define EXPORT extern "C" __attribute__((visibility("default"))) Result

namespace {

// Emulated code: what nvrtc.cpp makes, loaded.
struct Module {
  void* library;
  int file;
};
using Launch = void (*)(unsigned x,
                        unsigned y,
                        unsigned threads,
                        int backwards,
                        void** parameters,
                        CheckedMemory* memory);
using Sizes = const size_t* (*)(size_t* count);
struct Function {
  std::string name, text;
  Launch launch;
  std::vector<size_t> sizes;  // of the parameters
};

Machine& machine() { return Machine::get(); }

using Guard = std::lock_guard<std::recursive_mutex>;

int device_of(void* stream) { return machine().stream(stream)->device; }

// What a fault in a kernel prints before the process ends.
const char* running = nullptr;
void report_fault(int, siginfo_t* info, void*) {
  char text[256];
  int n = std::snprintf(text,
                        sizeof(text),
                        "emulator: %s touched address %p, which is no memory "
                        "of a device\n",
                        running != nullptr ? running : "host code",
                        info->si_addr);
  if (write(2, text, static_cast<size_t>(n)) < 0) _exit(139);
  void* stack[16];
  backtrace_symbols_fd(stack, backtrace(stack, 16), 2);
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

struct Watched {
  explicit Watched(const char* what) {
    running = what;
    struct sigaction action {};
    action.sa_sigaction = report_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before);
  }
  ~Watched() {
    sigaction(SIGSEGV, &before, nullptr);
    running = nullptr;
  }
  struct sigaction before {};
};

// TAEDA_EMULATOR_LAUNCHES is a file that gets how often each text was launched,
// a line each, when the process ends.
void count_launch(const std::string& text) {
  static const char* where = std::getenv("TAEDA_EMULATOR_LAUNCHES");
  if (where == nullptr) return;
  static auto& counts = *new std::map<std::string, int64_t>;
  if (counts.empty()) {
    std::atexit([] {
      std::ofstream out(where, std::ios::app);
      for (auto& [name, count] : counts) out << count << " " << name << "\n";
    });
  }
  ++counts[text];
}

Result copy_now(void* to, const void* from, size_t bytes) {
  Opened opened;
  Arena::get().copy_states(
      reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes);
  std::memcpy(to, from, bytes);
  return 0;
}

}  // namespace

EXPORT cuInit(unsigned) {
  const char* status = std::getenv("TAEDA_EMULATOR_INIT");
  return status == nullptr ? 0 : std::atoi(status);
}
EXPORT cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
EXPORT cuGetErrorName(Result, const char** text) {
  *text = "EMULATED";
  return 0;
}
EXPORT cuGetErrorString(Result status, const char** text) {
  switch (status) {
    case 0:
      *text = "no error";
      break;
    case kInvalid:
      *text = "invalid argument";
      break;
    case taeda::cuda::kOutOfMemory:
      *text = "out of memory";
      break;
    case 100:
      *text = "no CUDA-capable device is detected";
      break;
    case kNotMapped:
      *text = machine().failure.c_str();
      break;
    case kReset:
      *text = "context is destroyed";
      break;
    case kNotRecorded:
      *text = "operation not permitted when stream is capturing";
      break;
    case kSpoilt:
      *text = "operation failed due to a previous error during capture";
      break;
    case kUnjoined:
      *text = "capturing stream has unjoined work";
      break;
    case kOutside:
      *text = "dependency created on uncaptured work in another stream";
      break;
    case 35:
      *text = "CUDA driver version is insufficient for CUDA runtime version";
      break;
    default:
      *text = machine().failure.empty() ? "unknown error"
                                        : machine().failure.c_str();
  }
  return 0;
}

EXPORT cuDeviceGetCount(int* count) {
  *count = static_cast<int>(machine().devices.size());
  return 0;
}
EXPORT cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
EXPORT cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<size_t>(size), "Emulated GPU");
  return 0;
}
EXPORT cuDeviceGetAttribute(int* value, Attribute which, int device) {
  switch (which) {
    case Attribute::Major:
      *value = 9;
      return 0;
    case Attribute::WarpSize:
      *value = 32;
      return 0;
    case Attribute::Multiprocessors:
      *value = 2;
      return 0;
    case Attribute::MaxThreadsPerBlock:
      *value = 1024;
      return 0;
    case Attribute::MaxThreadsPerMultiprocessor:
      *value = 2048;
      return 0;
    case Attribute::SharedPerBlock:
      *value = 48 << 10;
      return 0;
    case Attribute::PciBus:
      *value = device;
      return 0;
    case Attribute::VirtualMemory:
      *value = std::getenv("TAEDA_EMULATOR_NO_MAPPING") == nullptr;
      return 0;
    default:
      *value = 0;
      return 0;
  }
}
EXPORT cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = machine().devices[static_cast<size_t>(device)].total;
  return 0;
}
EXPORT cuDeviceGetUuid_v2(Uuid* uuid, int device) {
  std::memset(uuid->bytes, 0xe0 + device, sizeof(uuid->bytes));
  return 0;
}
EXPORT cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return 0;
}
// A context is the device's number, from 1 on.
EXPORT cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<intptr_t>(device + 1));
  return 0;
}
// What was on the device is gone, and so is whoever used it.
EXPORT cuDevicePrimaryCtxReset_v2(int device) {
  Guard guard(machine().mutex);
  machine().finish_all(device);
  machine().devices[static_cast<size_t>(device)].reset = true;
  return 0;
}
EXPORT cuCtxSetCurrent(void* context) {
  current_device = static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
  return 0;
}
EXPORT cuCtxSynchronize() {
  Guard guard(machine().mutex);
  if (Result refused = machine().refuse_wait(nullptr)) return refused;
  return machine().waited(machine().finish_all(current_device));
}
EXPORT cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return 0;
}
EXPORT cuCtxEnablePeerAccess(void*, unsigned) { return 0; }

EXPORT cuMemGetInfo_v2(size_t* free, size_t* total) {
  Guard guard(machine().mutex);
  Memory& m = machine().devices[static_cast<size_t>(current_device)];
  *free = m.total - m.used();
  *total = m.total;
  return 0;
}
EXPORT cuMemAlloc_v2(Address* out, size_t bytes) {
  Guard guard(machine().mutex);
  if (Result refused = machine().refuse_unsafe()) return refused;
  return machine().devices[static_cast<size_t>(current_device)].allocate(out,
                                                                         bytes);
}
EXPORT cuMemFree_v2(Address at) {
  Guard guard(machine().mutex);
  if (Result refused = machine().refuse_unsafe()) return refused;
  machine().finish_all(current_device);
  Memory* m = machine().memory_at(at, 1);
  return m == nullptr ? kInvalid : m->free(at);
}
EXPORT cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  Guard guard(machine().mutex);
  if (Result refused = machine().refuse_unsafe()) return refused;
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*out == nullptr) return taeda::cuda::kOutOfMemory;
  machine().pinned.emplace(static_cast<char*>(*out), bytes);
  return 0;
}
EXPORT cuMemFreeHost(void* data) {
  Guard guard(machine().mutex);
  if (Result refused = machine().refuse_unsafe()) return refused;
  machine().pinned.erase(static_cast<char*>(data));
  std::free(data);
  return 0;
}
EXPORT cuMemAddressReserve(
    Address* out, size_t bytes, size_t, Address, uint64_t) {
  Guard guard(machine().mutex);
  return machine().devices[static_cast<size_t>(current_device)].reserve(out,
                                                                        bytes);
}
EXPORT cuMemAddressFree(Address at, size_t bytes) {
  Guard guard(machine().mutex);
  return machine().devices[static_cast<size_t>(current_device)].unreserve(
      at, bytes);
}
EXPORT cuMemCreate(uint64_t* out,
                   size_t bytes,
                   const AllocationProperties* wanted,
                   uint64_t) {
  Guard guard(machine().mutex);
  auto device = static_cast<size_t>(wanted->location.id);
  Result result = machine().devices[device].create(out, bytes);
  // The device is part of the handle.
  if (result == 0) *out = *out * 16 + device;
  return result;
}
EXPORT cuMemExportToShareableHandle(int* out, uint64_t handle, int, uint64_t) {
  Guard guard(machine().mutex);
  return machine().devices[handle % 16].share(out, handle / 16);
}
EXPORT cuMemImportFromShareableHandle(uint64_t* out, void* shared, int) {
  Guard guard(machine().mutex);
  auto device = static_cast<size_t>(current_device);
  auto file = static_cast<int>(reinterpret_cast<intptr_t>(shared));
  Result result = machine().devices[device].import(out, file);
  if (result == 0) *out = *out * 16 + device;
  return result;
}
EXPORT cuIpcGetMemHandle(IpcHandle* out, Address at) {
  Guard guard(machine().mutex);
  Memory* m = machine().memory_at(at, 1);
  return m == nullptr ? kInvalid : m->share_block(out, at);
}
EXPORT cuIpcOpenMemHandle_v2(Address* out, IpcHandle handle, unsigned) {
  Guard guard(machine().mutex);
  return machine().devices[static_cast<size_t>(current_device)].open_block(
      out, handle);
}
EXPORT cuIpcCloseMemHandle(Address at) {
  Guard guard(machine().mutex);
  Memory* m = machine().memory_at(at, 1);
  return m == nullptr ? kInvalid : m->free(at);
}
EXPORT cuMemRelease(uint64_t handle) {
  Guard guard(machine().mutex);
  return machine().devices[handle % 16].release(handle / 16);
}
EXPORT cuMemMap(Address at, size_t bytes, size_t, uint64_t handle, uint64_t) {
  Guard guard(machine().mutex);
  return machine().devices[handle % 16].map(at, bytes, handle / 16);
}
EXPORT cuMemUnmap(Address at, size_t bytes) {
  Guard guard(machine().mutex);
  for (size_t i = 0; i < machine().devices.size(); ++i) {
    machine().finish_all(static_cast<int>(i));
  }
  Memory* m = machine().memory_at(at, bytes);
  return m == nullptr ? kInvalid : m->unmap(at, bytes);
}
EXPORT cuMemSetAccess(Address, size_t, const AccessRights*, size_t) {
  return 0;
}
EXPORT cuMemGetAllocationGranularity(size_t* bytes,
                                     const AllocationProperties*,
                                     int) {
  *bytes = size_t{2} << 20;
  return 0;
}

// What is not page-locked is read at once, as the driver's staging does.
EXPORT cuMemcpyHtoDAsync_v2(Address to,
                            const void* from,
                            size_t bytes,
                            void* stream) {
  Guard guard(machine().mutex);
  if (machine().memory_at(to, bytes) == nullptr) return kInvalid;
  auto* target = reinterpret_cast<void*>(to);
  if (machine().is_pinned(from, bytes)) {
    return machine().enqueue(
        stream, {"copy", [=] { return copy_now(target, from, bytes); }});
  }
  const char* bytes_from = static_cast<const char*>(from);
  auto staged =
      std::make_shared<std::vector<char>>(bytes_from, bytes_from + bytes);
  return machine().enqueue(
      stream,
      {"copy", [=] { return copy_now(target, staged->data(), bytes); }});
}
EXPORT cuMemcpyDtoHAsync_v2(void* to,
                            Address from,
                            size_t bytes,
                            void* stream) {
  Guard guard(machine().mutex);
  if (machine().memory_at(from, bytes) == nullptr) return kInvalid;
  const auto* source = reinterpret_cast<const void*>(from);
  if (!machine().is_pinned(to, bytes)) {
    Result refused = machine().refuse_wait(machine().stream(stream));
    if (refused != 0) return refused;
  }
  Result result = machine().enqueue(
      stream, {"copy", [=] { return copy_now(to, source, bytes); }});
  if (result != 0 || machine().is_pinned(to, bytes)) return result;
  return machine().waited(machine().finish(machine().stream(stream)));
}
EXPORT cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* s) {
  Guard guard(machine().mutex);
  if (!machine().memory_at(from, bytes) || !machine().memory_at(to, bytes)) {
    return kInvalid;
  }
  auto* target = reinterpret_cast<void*>(to);
  const auto* source = reinterpret_cast<const void*>(from);
  return machine().enqueue(
      s, {"copy", [=] { return copy_now(target, source, bytes); }});
}
EXPORT cuMemcpyPeerAsync(
    Address to, void*, Address from, void*, size_t bytes, void* stream) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
EXPORT cuMemsetD8Async(Address to,
                       unsigned char value,
                       size_t count,
                       void* stream) {
  Guard guard(machine().mutex);
  if (machine().memory_at(to, count) == nullptr) return kInvalid;
  auto* target = reinterpret_cast<void*>(to);
  return machine().enqueue(stream, {"set", [=]() -> Result {
                                      Opened opened;
                                      std::memset(target, value, count);
                                      Arena::get().mark(to, count, kWritten);
                                      return 0;
                                    }});
}

EXPORT cuStreamCreateWithPriority(void** out, unsigned, int priority) {
  Guard guard(machine().mutex);
  if (machine().devices[static_cast<size_t>(current_device)].reset) {
    return kReset;
  }
  auto* stream = new Stream;
  stream->device = current_device;
  stream->priority = priority;
  machine().streams.push_back(stream);
  *out = stream;
  return 0;
}
EXPORT cuStreamDestroy_v2(void* handle) {
  Guard guard(machine().mutex);
  auto* stream = static_cast<Stream*>(handle);
  Result result = machine().finish(stream);
  std::erase(machine().streams, stream);
  delete stream;
  return result;
}
EXPORT cuStreamQuery(void* stream) {
  Guard guard(machine().mutex);
  Stream* s = machine().stream(stream);
  if (Result refused = machine().refuse_wait(s)) return refused;
  size_t before = s->queue.size();
  if (before == 0) return 0;
  // It goes on a little, so that who asks again and again gets there.
  machine().run_until([&] { return s->queue.size() < before; });
  return s->queue.empty() ? 0 : taeda::cuda::kNotReady;
}
EXPORT cuStreamSynchronize(void* stream) {
  Guard guard(machine().mutex);
  Result refused = machine().refuse_wait(machine().stream(stream));
  if (refused != 0) return refused;
  return machine().waited(machine().finish(machine().stream(stream)));
}
EXPORT cuLaunchHostFunc(void* stream, void (*function)(void*), void* context) {
  Guard guard(machine().mutex);
  return machine().enqueue(stream, {"host", [=]() -> Result {
                                      function(context);
                                      return 0;
                                    }});
}

// What the allocator tells; see Note [Checked memory].
EXPORT taedaRedZone(size_t* bytes) {
  *bytes = setting("TAEDA_EMULATOR_RED_ZONE", 512);
  return 0;
}
EXPORT taedaBlockTaken(Address at, size_t bytes, void* stream) {
  Guard guard(machine().mutex);
  auto take = [=]() -> Result {
    Memory* memory = machine().memory_at(at, bytes);
    if (memory == nullptr) return kInvalid;
    memory->poison(at, bytes);
    Arena::get().mark(at, bytes, kTaken);
    Arena::get().blocks[at] = bytes;
    return 0;
  };
  return machine().enqueue(stream, {"take", take, nullptr, 0, true});
}
EXPORT taedaBlockFreed(Address at, size_t bytes, void* stream) {
  Guard guard(machine().mutex);
  auto free = [=]() -> Result {
    Arena::get().mark(at, bytes, kNobodys);
    Arena::get().blocks.erase(at);
    return 0;
  };
  return machine().enqueue(stream, {"free", free, nullptr, 0, true});
}

// The image is a shared library, behind 8 bytes that say its size.
EXPORT cuModuleLoadData(Module** out, const void* image) {
  uint64_t size = 0;
  std::memcpy(&size, image, sizeof(size));
  const char* bytes = static_cast<const char*>(image) + sizeof(size);
  if (size < 4 || size > (uint64_t{1} << 30) ||
      std::memcmp(bytes, "\177ELF", 4) != 0) {
    return 200;  // CUDA_ERROR_INVALID_IMAGE
  }
  int file = memfd_create("emulated_kernel", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes, size) != static_cast<ssize_t>(size)) {
    return 200;
  }
  std::string path = "/proc/self/fd/" + std::to_string(file);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    Guard guard(machine().mutex);
    machine().failure = dlerror();
    close(file);
    return 200;
  }
  *out = new Module{library, file};
  return 0;
}
EXPORT cuModuleUnload(Module* module) {
  dlclose(module->library);
  close(module->file);
  delete module;
  return 0;
}
EXPORT cuModuleGetFunction(Function** out, Module* module, const char* name) {
  std::string symbol = std::string("emulated_") + name;
  auto launch =
      reinterpret_cast<Launch>(dlsym(module->library, symbol.c_str()));
  auto sizes = reinterpret_cast<Sizes>(
      dlsym(module->library, (symbol + "_sizes").c_str()));
  if (launch == nullptr || sizes == nullptr) return 500;  // not found
  size_t count = 0;
  const size_t* first = sizes(&count);
  auto word = [&](const char* symbol) {
    return static_cast<const char*>(dlsym(module->library, symbol));
  };
  const char *text_name = word("emulated_name"), *text = word("emulated_text");
  if (text != nullptr) emulator::keep_text(text_name, text);
  *out = new Function{name,
                      text_name != nullptr ? text_name : "",
                      launch,
                      {first, first + count}};
  return 0;
}
EXPORT cuLaunchKernel(Function* function,
                      unsigned grid_x,
                      unsigned grid_y,
                      unsigned,
                      unsigned block_x,
                      unsigned,
                      unsigned,
                      unsigned,
                      void* stream,
                      void** parameters,
                      void**) {
  Guard guard(machine().mutex);
  if (grid_x == 0 || grid_y == 0 || block_x == 0 || block_x > 1024) {
    return kInvalid;
  }
  count_launch(function->text);
  // Parameters are copied by the call.
  auto copies = std::make_shared<std::vector<std::vector<char>>>();
  for (size_t i = 0; i < function->sizes.size(); ++i) {
    const char* from = static_cast<const char*>(parameters[i]);
    copies->emplace_back(from, from + function->sizes[i]);
  }
  auto run = [=]() -> Result {
    std::vector<void*> given;
    std::vector<std::unique_ptr<char[]>> aligned;
    for (auto& copy : *copies) {
      aligned.push_back(std::make_unique<char[]>(copy.size() + 64));
      auto at = (reinterpret_cast<uintptr_t>(aligned.back().get()) + 63) / 64;
      given.push_back(reinterpret_cast<void*>(at * 64));
      std::memcpy(given.back(), copy.data(), copy.size());
    }
    Opened opened;
    Watched watched(function->name.c_str());
    machine().running = function->name;
    machine().reported = false;
    function->launch(grid_x,
                     grid_y,
                     block_x,
                     machine().drawn_order(),
                     given.data(),
                     &Arena::get().checked);
    machine().running.clear();
    return 0;
  };
  (void)device_of(stream);
  return machine().enqueue(stream, {"kernel", run});
}
