// What libtaeda asks of this library: c10/core/gpu.h.
#include <taeda/aten/native/cuda/cudnn_plans.h>
#include <taeda/aten/native/cuda/fourier.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/launchers.h>
#include <taeda/aten/native/cuda/sparse_products.h>
#include <taeda/c10/cuda/generator.h>
#include <taeda/c10/cuda/library.h>
#include <taeda/c10/cuda/memory.h>
#include <taeda/c10/cuda/nvrtc.h>
#include <taeda/c10/cuda/parts.h>

namespace taeda::cuda {

namespace {

class CudaGpu final : public Gpu {
 public:
  int driver_version() override {
    int version = 0;
    check(driver().version(&version), "cuDriverGetVersion");
    return version;
  }
  int device_count() override { return cuda::device_count(); }
  int current_device() override { return cuda::current_device(); }
  void set_device(int device) override { cuda::set_device(device); }
  void synchronize(int device) override { wait_for_device(device); }
  GpuProperties properties(int device) override {
    return properties_of(device);
  }
  bool can_access_peer(int device, int peer) override {
    check_device("can_device_access_peer", device);
    check_device("can_device_access_peer", peer);
    int can = 0;
    check(driver().can_access(&can, device, peer), "cuDeviceCanAccessPeer");
    return can != 0;
  }

  GpuStream current_stream(int device) override {
    check_device("current_stream", device);
    return cuda::current_stream(device);
  }
  void set_stream(GpuStream stream) override { cuda::set_stream(stream); }
  GpuStream new_stream(int device, int priority) override {
    return cuda::new_stream(device, priority);
  }
  bool query(GpuStream stream) override { return is_done(stream); }
  void wait(GpuStream stream) override { wait_for(stream); }
  int priority(GpuStream stream) override { return priority_of(stream); }
  uint64_t handle(GpuStream stream) override {
    return reinterpret_cast<uint64_t>(handle_of(stream));
  }

  void* new_event(int device,
                  bool timing,
                  bool blocking,
                  bool interprocess) override {
    return new Event(device, timing, blocking, interprocess);
  }
  void free_event(void* event) override { delete of(event); }
  void record(void* event, GpuStream stream) override {
    of(event)->record(stream);
  }
  void wait(GpuStream stream, void* event) override {
    of(event)->block(stream);
  }
  bool query_event(void* event) override { return of(event)->is_done(); }
  void wait_event(void* event) override { of(event)->wait(); }
  float milliseconds(void* from, void* to) override {
    return of(from)->until(*of(to));
  }

  GpuMemoryStats memory_stats(int device) override {
    return cuda::memory_stats(device);
  }
  std::vector<GpuSegment> segments() override { return memory_segments(); }
  void reset_peak(int device) override { cuda::reset_peak(device); }
  void reset_totals(int device) override { cuda::reset_totals(device); }
  void empty_cache() override { cuda::empty_cache(); }
  std::array<size_t, 2> memory_info(int device) override {
    use_context(device);
    size_t free = 0, total = 0;
    check(driver().memory_info(&free, &total), "cuMemGetInfo");
    return {free, total};
  }
  void set_memory_fraction(double fraction, int device) override {
    cuda::set_memory_fraction(fraction, device);
  }
  double memory_fraction(int device) override {
    return cuda::memory_fraction(device);
  }
  void record_stream(const void* data, GpuStream stream) override {
    cuda::record_stream(data, stream);
  }
  void copy_bytes(void* to, const void* from, size_t bytes) override {
    use_context();
    check(driver().within(reinterpret_cast<Address>(to),
                          reinterpret_cast<Address>(from),
                          bytes,
                          handle_of(cuda::current_stream())),
          "cuMemcpyDtoDAsync");
  }
  void add_library_folder(std::string folder) override {
    cuda::add_library_folder(std::move(folder));
  }
  int64_t cudnn_version() override { return cuda::cudnn_version(); }
  int64_t fourier_plans(int device) override {
    return cuda::fourier_plans(device);
  }
  int64_t most_fourier_plans(int device) override {
    return cuda::most_fourier_plans(device);
  }
  void set_most_fourier_plans(int device, int64_t most) override {
    cuda::set_most_fourier_plans(device, most);
  }
  void clear_fourier_plans(int device) override {
    cuda::clear_fourier_plans(device);
  }
  void* allocate_host(size_t bytes) override {
    return cuda::allocate_host(bytes);
  }
  void free_host(void* data) override { cuda::free_host(data); }
  bool is_pinned(const void* data) override { return cuda::is_pinned(data); }

  Generator default_generator(int device) override {
    return Generator::share(&cuda::default_generator(device));
  }
  Generator new_generator(int device) override {
    check_device("Generator", device);
    return make_intrusive<CudaGeneratorImpl>(device,
                                             GeneratorImpl::kDefaultSeed);
  }

  GpuPools& pools() override { return pools_part(); }
  GpuGraphs& graphs() override { return graphs_part(); }
  GpuSharing& sharing() override { return sharing_part(); }

 private:
  static Event* of(void* event) { return static_cast<Event*>(event); }
};

constexpr Launchers kLaunchers{
    &launch_pointwise, &launch_reduce, &copy, &fill, &list_of_calls};

}  // namespace

}  // namespace taeda::cuda

extern "C" __attribute__((visibility("default"))) taeda::Gpu* taeda_load_gpu() {
  using namespace taeda;
  TAEDA_CHECK(cuda::device_count() > 0, "the NVIDIA driver has no device");
  set_allocator(DeviceType::CUDA, &cuda::device_allocator());
  set_launchers(DeviceType::CUDA, &cuda::kLaunchers);
  cuda::register_fallback();
  cuda::register_products();
  native::set_sparse_products_on_cuda(&cuda::kSparseProducts);
  return new cuda::CudaGpu;
}
