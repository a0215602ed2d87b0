#include <taeda/c10/cuda/sharing.h>

#include <taeda/c10/cuda/device_memory.h>

#include <unistd.h>

#include <cstring>

namespace taeda::cuda {

namespace {

constexpr int kDescriptor = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct Opened {
  int device = 0;
  Address base = 0;
  size_t bytes = 0, page = 0;
  std::vector<AllocationHandle> pages;
};

void close_pages(const Opened& opened) {
  for (size_t i = 0; i < opened.pages.size(); ++i) {
    driver().unmap(opened.base + i * opened.page, opened.page);
    driver().release(opened.pages[i]);
  }
  driver().unreserve(opened.base, opened.bytes);
}

// Our own work on it is to be done before another process may write there.
void wait_for_work(int device) {
  use_context(device);
  driver().context_wait();
}

DataPtr open_pages(const GpuShared& shared) {
  need("sharing CUDA tensors", driver().import_handle, driver().reserve);
  auto opened = std::make_unique<Opened>();
  opened->device = shared.device;
  opened->page = shared.page;
  opened->bytes = shared.page * shared.descriptors.size();
  check(driver().reserve(&opened->base, opened->bytes, 0, 0, 0),
        "cuMemAddressReserve");
  AccessRights rights;
  rights.location.id = shared.device;
  for (size_t i = 0; i < shared.descriptors.size(); ++i) {
    AllocationHandle handle = 0;
    auto descriptor = static_cast<intptr_t>(shared.descriptors[i]);
    check(driver().import_handle(
              &handle, reinterpret_cast<void*>(descriptor), kDescriptor),
          "cuMemImportFromShareableHandle");
    Address at = opened->base + i * shared.page;
    check(driver().map(at, shared.page, 0, handle, 0), "cuMemMap");
    check(driver().set_access(at, shared.page, &rights, 1), "cuMemSetAccess");
    opened->pages.push_back(handle);
  }
  auto* data = reinterpret_cast<void*>(opened->base + shared.offset);
  auto free = [](void* context, size_t) {
    std::unique_ptr<Opened> mine(static_cast<Opened*>(context));
    wait_for_work(mine->device);
    close_pages(*mine);
  };
  return {data, opened.release(), free};
}

// A segment of another process can be opened once.
struct Segments {
  struct Open {
    Address base = 0;
    int device = 0;
    int users = 0;
  };
  std::mutex mutex;
  std::map<std::string, Open> by_handle;
};
Segments& segments() {
  static auto& all = *new Segments;
  return all;
}

DataPtr open_segment(const GpuShared& shared) {
  need("sharing CUDA tensors", driver().open_memory, driver().close_memory);
  Segments& all = segments();
  std::lock_guard guard(all.mutex);
  Segments::Open& open = all.by_handle[shared.handle];
  if (open.users == 0) {
    constexpr unsigned kEnablePeers = 1;
    IpcHandle given{};
    std::memcpy(given.bytes,
                shared.handle.data(),
                std::min(shared.handle.size(), sizeof(given.bytes)));
    open.device = shared.device;
    check(driver().open_memory(&open.base, given, kEnablePeers),
          "cuIpcOpenMemHandle");
  }
  ++open.users;
  auto* data = reinterpret_cast<void*>(open.base + shared.offset);
  auto free = [](void* context, size_t) {
    std::unique_ptr<std::string> handle(static_cast<std::string*>(context));
    Segments& known = segments();
    std::lock_guard lock(known.mutex);
    auto found = known.by_handle.find(*handle);
    wait_for_work(found->second.device);
    if (--found->second.users > 0) return;
    driver().close_memory(found->second.base);
    known.by_handle.erase(found);
  };
  return {data, new std::string(shared.handle), free};
}

}  // namespace

GpuShared share(const void* data) {
  Block* block = block_at(data);
  TAEDA_CHECK(block != nullptr,
              "sharing CUDA tensors: the memory is another library's, or of "
              "another process");
  Segment& segment = *block->segment;
  GpuShared out;
  out.device = segment.pool().stream.device;
  use_context(out.device);
  if (!segment.grows()) {
    need("sharing CUDA tensors", driver().memory_handle);
    IpcHandle handle{};
    check(driver().memory_handle(&handle, segment.base()), "cuIpcGetMemHandle");
    out.handle.assign(reinterpret_cast<const char*>(handle.bytes),
                      sizeof(handle.bytes));
    out.offset = block->address - segment.base();
    return out;
  }
  need("sharing CUDA tensors", driver().export_handle);
  out.page = segment.page();
  out.offset = (block->address - segment.base()) % out.page;
  for (AllocationHandle page : pages_of(*block)) {
    int descriptor = -1;
    check(driver().export_handle(&descriptor, page, kDescriptor, 0),
          "cuMemExportToShareableHandle");
    out.descriptors.push_back(descriptor);
  }
  return out;
}

DataPtr open(const GpuShared& shared) {
  check_device("sharing CUDA tensors", shared.device);
  DeviceGuard guard(shared.device);
  use_context(shared.device);
  DataPtr opened = shared.page > 0 ? open_pages(shared) : open_segment(shared);
  return opened;
}

}  // namespace taeda::cuda
