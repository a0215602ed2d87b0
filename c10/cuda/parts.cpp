#include <taeda/c10/cuda/parts.h>

#include <taeda/c10/cuda/graph.h>
#include <taeda/c10/cuda/memory.h>
#include <taeda/c10/cuda/memory_options.h>
#include <taeda/c10/cuda/sharing.h>

#include <map>
#include <mutex>

namespace taeda::cuda {

namespace {

class Pools final : public GpuPools {
 public:
  const void* new_plug_in(void* allocate, void* free) override {
    auto* made = new PlugIn;  // memory of it may outlive everything
    made->allocate = reinterpret_cast<decltype(made->allocate)>(allocate);
    made->free = reinterpret_cast<decltype(made->free)>(free);
    return made;
  }
  void change_allocator(const void* plug_in) override {
    TAEDA_CHECK(!memory_is_used(),
                "change_current_allocator: memory was taken already; the "
                "allocator is changed before the first CUDA tensor");
    set_plug_in(static_cast<const PlugIn*>(plug_in));
  }
  const void* changed_allocator() override { return current_plug_in(); }

  PoolId new_pool(const void* plug_in,
                  bool use_on_oom,
                  bool no_split) override {
    return cuda::new_pool(
        {static_cast<const PlugIn*>(plug_in), use_on_oom, no_split});
  }
  void retain(PoolId pool) override { retain_pool(pool); }
  void release(PoolId pool) override { release_pool(pool); }
  int users(PoolId pool) override { return users_of(pool); }
  PoolId use(int device, PoolId pool) override {
    return use_pool(device, pool);
  }

  void set_options(const std::string& text) override {
    set_memory_options(text);
    auto share = memory_options().per_process_memory_fraction;
    for (int i = 0; share && i < device_count(); ++i) {
      set_memory_fraction(*share, i);
    }
  }
  std::string options() override { return memory_options().text; }
  void record_history(size_t most, bool origins) override {
    cuda::record_history(most, origins);
  }
  std::vector<std::vector<GpuMemoryAction>> history() override {
    return memory_history();
  }

  uint64_t allocate(size_t bytes, GpuStream stream) override;
  void free(uint64_t address) override;

  GpuHostStats host_stats() override { return cuda::host_stats(); }
  void reset_host_peak() override { cuda::reset_host_peak(); }
  void reset_host_totals() override { cuda::reset_host_totals(); }
  void empty_host_cache() override { cuda::empty_host_cache(); }

 private:
  std::mutex mutex_;
  std::map<uint64_t, DataPtr> given_;  // to other libraries
};

uint64_t Pools::allocate(size_t bytes, GpuStream stream) {
  DeviceGuard guard(stream.device);
  GpuStream before = current_stream(stream.device);
  set_stream(stream);
  DataPtr made;
  try {
    made = device_allocator().allocate(bytes);
  } catch (...) {
    set_stream(before);
    throw;
  }
  set_stream(before);
  auto address = reinterpret_cast<uint64_t>(made.data);
  std::lock_guard lock(mutex_);
  if (address != 0) given_.emplace(address, made);
  return address;
}

void Pools::free(uint64_t address) {
  if (address == 0) return;
  DataPtr found;
  {
    std::lock_guard lock(mutex_);
    auto at = given_.find(address);
    TAEDA_CHECK(at != given_.end(),
                "caching_allocator_delete: no block begins at ",
                address);
    found = at->second;
    given_.erase(at);
  }
  found.deleter(found.context, 0);
}

class Graphs final : public GpuGraphs {
 public:
  bool is_capturing(GpuStream stream) override {
    return recording_of(stream) != 0;
  }
  void* make(bool keep_graph) override { return new Graph(keep_graph); }
  void destroy(void* graph) override { delete of(graph); }
  void begin(void* graph, PoolId pool, const std::string& mode) override {
    of(graph)->begin(pool, mode);
  }
  size_t end(void* graph) override { return of(graph)->end(); }
  void instantiate(void* graph) override { of(graph)->instantiate(); }
  void replay(void* graph) override { of(graph)->replay(); }
  void reset(void* graph) override { of(graph)->reset(); }
  PoolId pool(void* graph) override { return of(graph)->pool(); }
  void add_generator(void* graph, const Generator& generator) override {
    of(graph)->add_generator(generator);
  }
  void dump(void* graph, const std::string& path) override {
    of(graph)->dump(path);
  }
  uint64_t raw_graph(void* graph) override {
    return reinterpret_cast<uint64_t>(of(graph)->graph());
  }
  uint64_t raw_executable(void* graph) override {
    return reinterpret_cast<uint64_t>(of(graph)->executable());
  }

 private:
  static Graph* of(void* graph) { return static_cast<Graph*>(graph); }
};

class Sharing final : public GpuSharing {
 public:
  std::string event_handle(void* event) override {
    return static_cast<Event*>(event)->handle();
  }
  void* open_event(int device, const std::string& handle) override {
    return new Event(device, handle);
  }
  GpuShared share(const void* data) override { return cuda::share(data); }
  DataPtr open(const GpuShared& shared) override { return cuda::open(shared); }
};

}  // namespace

GpuPools& pools_part() {
  static auto& part = *new Pools;
  return part;
}
GpuGraphs& graphs_part() {
  static auto& part = *new Graphs;
  return part;
}
GpuSharing& sharing_part() {
  static auto& part = *new Sharing;
  return part;
}

}  // namespace taeda::cuda
