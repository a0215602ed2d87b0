// The devices' allocators behind one, and what programs ask of them.
#include <taeda/c10/cuda/device_memory.h>

#include <atomic>
#include <unordered_map>

namespace taeda::cuda {

namespace {

// Never destroyed: tensors of static storage are freed while the process ends.
MemoryOfDevice& memory_of(int device) {
  static auto& all = *new std::vector<std::unique_ptr<MemoryOfDevice>>([] {
    std::vector<std::unique_ptr<MemoryOfDevice>> made;
    for (int i = 0; i < device_count(); ++i) {
      made.push_back(std::make_unique<MemoryOfDevice>(i));
    }
    return made;
  }());
  check_device("CUDA", device);
  return *all[static_cast<size_t>(device)];
}

// By address, for record_stream().
struct UsedBlocks {
  std::mutex mutex;
  std::unordered_map<const void*, Block*> by_address;
};
UsedBlocks& used_blocks() {
  static auto& blocks = *new UsedBlocks;
  return blocks;
}

void free_block(void* context, size_t) {
  auto* block = static_cast<Block*>(context);
  {
    UsedBlocks& used = used_blocks();
    std::lock_guard guard(used.mutex);
    used.by_address.erase(reinterpret_cast<void*>(block->address));
  }
  memory_of(block->segment->pool().stream.device).free(block);
}

std::atomic<bool> used{false};

// Memory of an allocator that a program brought; the context of its DataPtr.
struct PluggedBlock {
  const PlugIn* plug_in;
  void* data;
  size_t bytes;
  GpuStream stream;
};
void free_plugged(void* context, size_t) {
  std::unique_ptr<PluggedBlock> block(static_cast<PluggedBlock*>(context));
  use_context(block->stream.device);
  block->plug_in->free(block->data,
                       static_cast<intptr_t>(block->bytes),
                       block->stream.device,
                       handle_of(block->stream));
}
DataPtr allocate_plugged(const PlugIn& plug_in,
                         size_t nbytes,
                         GpuStream stream) {
  use_context(stream.device);
  void* data = plug_in.allocate(
      static_cast<intptr_t>(nbytes), stream.device, handle_of(stream));
  TAEDA_CHECK_AS(OutOfMemory,
                 data != nullptr,
                 "CUDA out of memory: the CUDAPluggableAllocator in use gave "
                 "none of ",
                 nbytes,
                 " bytes");
  if (driver().block_taken != nullptr) {
    driver().block_taken(
        reinterpret_cast<Address>(data), nbytes, handle_of(stream));
  }
  auto* block = new PluggedBlock{&plug_in, data, nbytes, stream};
  return {data, block, &free_plugged};
}

class DeviceAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    if (nbytes == 0) return {};
    if (!used.load(std::memory_order_relaxed)) used.store(true);
    int device = current_device();
    GpuStream stream = current_stream(device);
    if (const PlugIn* plug_in = current_plug_in()) {
      return allocate_plugged(*plug_in, nbytes, stream);
    }
    Block* block = memory_of(device).allocate(nbytes, stream);
    auto* data = reinterpret_cast<void*>(block->address);
    UsedBlocks& known = used_blocks();
    std::lock_guard guard(known.mutex);
    known.by_address.emplace(data, block);
    return {data, block, &free_block};
  }
  AllocatorStats stats() const override {
    GpuMemoryStats s = memory_stats(current_device());
    return {s.allocated_bytes[0].current,
            s.allocated_bytes[0].peak,
            s.reserved_bytes[0].current - s.allocated_bytes[0].current,
            s.allocations[0].taken};
  }
  void reset_peak() override { cuda::reset_peak(current_device()); }
  void empty_cache() override { cuda::empty_cache(); }
};

// Counts are those of our own allocator.
void refuse_plugged(const char* call) {
  TAEDA_CHECK_AS(NotImplemented,
                 current_plug_in() == nullptr,
                 call,
                 ": the CUDAPluggableAllocator in use does not count");
}

}  // namespace

Allocator& device_allocator() {
  static auto& allocator = *new DeviceAllocator;
  return allocator;
}

bool memory_is_used() { return used.load(); }

GpuMemoryStats memory_stats(int device) {
  refuse_plugged("memory_stats");
  return memory_of(device).stats();
}

std::vector<GpuSegment> memory_segments() {
  refuse_plugged("memory_snapshot");
  std::vector<GpuSegment> out;
  for (int i = 0; i < device_count(); ++i) memory_of(i).list_segments(&out);
  return out;
}

void reset_peak(int device) { memory_of(device).reset_peak(); }
void reset_totals(int device) { memory_of(device).reset_totals(); }
double memory_fraction(int device) { return memory_of(device).fraction(); }

void empty_cache(PoolId pool) {
  if (current_plug_in() != nullptr) return;  // it caches nothing that we know
  for (int i = 0; i < device_count(); ++i) memory_of(i).empty_cache(pool);
}

void record_history(size_t most, bool origins) {
  for (int i = 0; i < device_count(); ++i) {
    memory_of(i).record_history(most, origins);
  }
}
std::vector<std::vector<GpuMemoryAction>> memory_history() {
  std::vector<std::vector<GpuMemoryAction>> out;
  for (int i = 0; i < device_count(); ++i) {
    out.push_back(memory_of(i).history());
  }
  return out;
}

void set_memory_fraction(double fraction, int device) {
  TAEDA_CHECK_AS(Value,
                 fraction >= 0 && fraction <= 1,
                 "Invalid fraction value: ",
                 fraction,
                 ". Allowed range: 0~1");
  memory_of(device).limit(fraction);
}

Block* block_at(const void* data) {
  UsedBlocks& known = used_blocks();
  std::lock_guard guard(known.mutex);
  auto found = known.by_address.find(data);
  return found == known.by_address.end() ? nullptr : found->second;
}

std::vector<AllocationHandle> pages_of(const Block& block) {
  return memory_of(block.segment->pool().stream.device).pages_of(block);
}

void record_stream(const void* data, GpuStream stream) {
  Block* block = block_at(data);
  if (block == nullptr) return;  // another library's memory
  memory_of(block->segment->pool().stream.device).record(block, stream);
}

}  // namespace taeda::cuda
