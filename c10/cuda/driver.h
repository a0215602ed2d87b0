// The CUDA driver as a table of function pointers: nothing links libcuda, and
// tests put a driver of their own in its place. Types and numbers are those of
// NVIDIA's CUDA Driver API documentation (12.x and 13.0).
#pragma once

#include <taeda/c10/util/check.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace taeda::cuda {

using Result = int;  // CUresult
inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotReady = 600;
// A call that cannot be recorded, up to what such a recording answers later.
inline constexpr Result kNotRecordable = 900, kLastOfRecording = 909;

using Address = uint64_t;  // CUdeviceptr
using ContextHandle = struct ContextObject*;
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;
using ModuleHandle = struct ModuleObject*;
using FunctionHandle = struct FunctionObject*;
using AllocationHandle = uint64_t;  // CUmemGenericAllocationHandle
using GraphHandle = struct GraphObject*;
using GraphExecHandle = struct GraphExecObject*;

// CUdevice_attribute
enum class Attribute : int {
  MaxThreadsPerBlock = 1,
  TotalConstantMemory = 9,
  WarpSize = 10,
  ClockRate = 13,
  Multiprocessors = 16,
  Integrated = 18,
  MemoryClockRate = 36,
  MemoryBusWidth = 37,
  L2CacheSize = 38,
  MaxThreadsPerMultiprocessor = 39,
  UnifiedAddressing = 41,
  PciBus = 33,
  PciDevice = 34,
  PciDomain = 50,
  Major = 75,
  Minor = 76,
  SharedPerMultiprocessor = 81,
  RegistersPerMultiprocessor = 82,
  MultiGpuBoard = 84,
  SharedPerBlock = 8,
  SharedPerBlockOptin = 97,
  VirtualMemory = 102,
};

struct MemoryLocation {
  int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;
};
// CUmemAllocationProp
struct AllocationProperties {
  int type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;
  MemoryLocation location;
  void* windows = nullptr;
  struct {
    unsigned char compression = 0;
    unsigned char rdma = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};
// CUmemAccessDesc
struct AccessRights {
  MemoryLocation location;
  int flags = 3;  // read and write
};

// CUipcMemHandle, CUipcEventHandle
struct IpcHandle {
  unsigned char bytes[64];
};

struct Uuid {
  unsigned char bytes[16];
};

using HostFunction = void (*)(void* context);

// One line a function: its name in the library, its name here, its parameters.
// An older driver may lack those of the second list, which then are null.
#define TAEDA_CUDA_FUNCTIONS(X)                                               \
  X(cuInit, init, (unsigned flags))                                           \
  X(cuDriverGetVersion, version, (int* version))                              \
  X(cuGetErrorName, error_name, (Result, const char** text))                  \
  X(cuGetErrorString, error_text, (Result, const char** text))                \
  X(cuDeviceGetCount, device_count, (int* count))                             \
  X(cuDeviceGet, device_get, (int* device, int ordinal))                      \
  X(cuDeviceGetName, device_name, (char* name, int size, int device))         \
  X(cuDeviceGetAttribute, attribute, (int* value, Attribute, int device))     \
  X(cuDeviceTotalMem_v2, total_memory, (size_t * bytes, int device))          \
  X(cuDeviceGetUuid_v2, device_uuid, (Uuid*, int device))                     \
  X(cuDeviceCanAccessPeer, can_access, (int* can, int device, int peer))      \
  X(cuDevicePrimaryCtxRetain, context_retain, (ContextHandle*, int device))   \
  X(cuCtxSetCurrent, context_set, (ContextHandle))                            \
  X(cuCtxSynchronize, context_wait, ())                                       \
  X(cuCtxGetStreamPriorityRange, priorities, (int* least, int* greatest))     \
  X(cuCtxEnablePeerAccess, enable_peer, (ContextHandle, unsigned flags))      \
  X(cuMemGetInfo_v2, memory_info, (size_t * free, size_t * total))            \
  X(cuMemAlloc_v2, allocate, (Address*, size_t bytes))                        \
  X(cuMemFree_v2, free, (Address))                                            \
  X(cuMemHostAlloc, host_allocate, (void**, size_t bytes, unsigned flags))    \
  X(cuMemFreeHost, host_free, (void*))                                        \
  X(cuMemcpyHtoDAsync_v2,                                                     \
    to_device,                                                                \
    (Address, const void*, size_t bytes, StreamHandle))                       \
  X(cuMemcpyDtoHAsync_v2, to_host, (void*, Address, size_t, StreamHandle))    \
  X(cuMemcpyDtoDAsync_v2, within, (Address, Address, size_t, StreamHandle))   \
  X(cuMemcpyPeerAsync,                                                        \
    between,                                                                  \
    (Address, ContextHandle, Address, ContextHandle, size_t, StreamHandle))   \
  X(cuMemsetD8Async,                                                          \
    set_bytes,                                                                \
    (Address, unsigned char value, size_t count, StreamHandle))               \
  X(cuStreamCreateWithPriority,                                               \
    stream_create,                                                            \
    (StreamHandle*, unsigned flags, int priority))                            \
  X(cuStreamDestroy_v2, stream_destroy, (StreamHandle))                       \
  X(cuStreamQuery, stream_query, (StreamHandle))                              \
  X(cuStreamSynchronize, stream_wait, (StreamHandle))                         \
  X(cuStreamWaitEvent,                                                        \
    stream_wait_event,                                                        \
    (StreamHandle, EventHandle, unsigned flags))                              \
  X(cuLaunchHostFunc, host_call, (StreamHandle, HostFunction, void* context)) \
  X(cuEventCreate, event_create, (EventHandle*, unsigned flags))              \
  X(cuEventDestroy_v2, event_destroy, (EventHandle))                          \
  X(cuEventRecord, event_record, (EventHandle, StreamHandle))                 \
  X(cuEventQuery, event_query, (EventHandle))                                 \
  X(cuEventSynchronize, event_wait, (EventHandle))                            \
  X(cuModuleLoadData, module_load, (ModuleHandle*, const void* image))        \
  X(cuModuleUnload, module_unload, (ModuleHandle))                            \
  X(cuModuleGetFunction,                                                      \
    function_get,                                                             \
    (FunctionHandle*, ModuleHandle, const char* name))                        \
  X(cuLaunchKernel,                                                           \
    launch,                                                                   \
    (FunctionHandle,                                                          \
     unsigned grid_x,                                                         \
     unsigned grid_y,                                                         \
     unsigned grid_z,                                                         \
     unsigned block_x,                                                        \
     unsigned block_y,                                                        \
     unsigned block_z,                                                        \
     unsigned shared_bytes,                                                   \
     StreamHandle,                                                            \
     void** parameters,                                                       \
     void** extra))

#define TAEDA_CUDA_LATER_FUNCTIONS(X)                                          \
  X(cuEventElapsedTime, elapsed_old, (float* ms, EventHandle, EventHandle))    \
  X(cuEventElapsedTime_v2, elapsed_new, (float* ms, EventHandle, EventHandle)) \
  X(cuMemAddressReserve,                                                       \
    reserve,                                                                   \
    (Address*,                                                                 \
     size_t bytes,                                                             \
     size_t alignment,                                                         \
     Address wanted,                                                           \
     uint64_t flags))                                                          \
  X(cuMemAddressFree, unreserve, (Address, size_t bytes))                      \
  X(cuMemCreate,                                                               \
    create,                                                                    \
    (AllocationHandle*, size_t, const AllocationProperties*, uint64_t flags))  \
  X(cuMemRelease, release, (AllocationHandle))                                 \
  X(cuMemMap,                                                                  \
    map,                                                                       \
    (Address, size_t, size_t offset, AllocationHandle, uint64_t flags))        \
  X(cuMemUnmap, unmap, (Address, size_t bytes))                                \
  X(cuMemSetAccess,                                                            \
    set_access,                                                                \
    (Address, size_t bytes, const AccessRights*, size_t count))                \
  X(cuMemGetAllocationGranularity,                                             \
    granularity,                                                               \
    (size_t*, const AllocationProperties*, int which))                         \
  X(cuMemExportToShareableHandle,                                              \
    export_handle,                                                             \
    (void* out, AllocationHandle, int type, uint64_t flags))                   \
  X(cuMemImportFromShareableHandle,                                            \
    import_handle,                                                             \
    (AllocationHandle*, void* shared, int type))                               \
  X(cuIpcGetMemHandle, memory_handle, (IpcHandle*, Address))                   \
  X(cuIpcOpenMemHandle_v2, open_memory, (Address*, IpcHandle, unsigned flags)) \
  X(cuIpcCloseMemHandle, close_memory, (Address))                              \
  X(cuIpcGetEventHandle, event_handle, (IpcHandle*, EventHandle))              \
  X(cuIpcOpenEventHandle, open_event, (EventHandle*, IpcHandle))               \
  X(cuThreadExchangeStreamCaptureMode, exchange_mode, (int* mode))             \
  X(cuStreamBeginCapture_v2, begin_capture, (StreamHandle, int mode))          \
  X(cuStreamEndCapture, end_capture, (StreamHandle, GraphHandle*))             \
  X(cuStreamGetCaptureInfo_v2,                                                 \
    capture_info,                                                              \
    (StreamHandle,                                                             \
     int* status,                                                              \
     uint64_t* id,                                                             \
     GraphHandle*,                                                             \
     const void** dependencies,                                                \
     size_t* dependency_count))                                                \
  X(cuGraphGetNodes, graph_nodes, (GraphHandle, void* nodes, size_t* count))   \
  X(cuGraphDebugDotPrint,                                                      \
    graph_print,                                                               \
    (GraphHandle, const char* path, unsigned flags))                           \
  X(cuGraphInstantiateWithFlags,                                               \
    graph_instantiate,                                                         \
    (GraphExecHandle*, GraphHandle, unsigned long long flags))                 \
  X(cuGraphLaunch, graph_launch, (GraphExecHandle, StreamHandle))              \
  X(cuGraphExecDestroy, graph_exec_destroy, (GraphExecHandle))                 \
  X(cuGraphDestroy, graph_destroy, (GraphHandle))

// What a memory checker's driver has and others lack: it is told, in a stream's
// order, which bytes of the allocator's segments are a block, and says how many
// bytes behind each block shall be nobody's.
#define TAEDA_CUDA_CHECKER_FUNCTIONS(X)                                  \
  X(taedaRedZone, red_zone, (size_t * bytes))                            \
  X(taedaBlockTaken, block_taken, (Address, size_t bytes, StreamHandle)) \
  X(taedaBlockFreed, block_freed, (Address, size_t bytes, StreamHandle))

struct Driver {
#define TAEDA_MEMBER(symbol, name, parameters) Result(*name) parameters;
  TAEDA_CUDA_FUNCTIONS(TAEDA_MEMBER)
  TAEDA_CUDA_LATER_FUNCTIONS(TAEDA_MEMBER)
  TAEDA_CUDA_CHECKER_FUNCTIONS(TAEDA_MEMBER)
#undef TAEDA_MEMBER
};

// The driver, loaded and initialised at the first call; RuntimeError saying
// what is missing where there is none, at each call.
const Driver& driver();

// "CUDA error: out of memory (cuMemCreate)"; OutOfMemory where that is it.
[[noreturn]] void throw_status(Result status, const char* call);
inline void check(Result status, const char* call) {
  if (TAEDA_UNLIKELY(status != kSuccess)) throw_status(status, call);
}

// RuntimeError saying that the driver is too old for `what` where it lacks one.
template <class... F>
void need(const char* what, F... functions) {
  TAEDA_CHECK(((functions != nullptr) && ...),
              what,
              ": the NVIDIA driver on your system is too old for it");
}

// A library that a variable of the environment names, or the first that is
// found; null with the reasons in `errors`.
void* open_library(const char* variable,
                   std::initializer_list<std::string> names,
                   std::string* errors);

}  // namespace taeda::cuda
