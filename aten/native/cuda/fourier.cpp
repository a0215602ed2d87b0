// See Note [Transforms by cuFFT].
#include <taeda/aten/native/cuda/fourier.h>

#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cuda/program.h>
#include <taeda/c10/cuda/cufft.h>
#include <taeda/c10/cuda/stream.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace taeda::cuda {

namespace {

void check_cufft(cufft::Status status, const char* op, const char* call) {
  TAEDA_CHECK(status == 0,
              op,
              ": CUDA error: cuFFT status ",
              status,
              " when calling ",
              call);
}

cufft::DataType type_of(ScalarType dtype) {
  switch (dtype) {
    case kDouble:
      return cufft::kReal64;
    case kHalf:
      return cufft::kReal16;
    case kComplexFloat:
      return cufft::kComplex32;
    case kComplexDouble:
      return cufft::kComplex64;
    case kComplexHalf:
      return cufft::kComplex16;
    default:
      TAEDA_INTERNAL_ASSERT(dtype == kFloat, "no transforms of ", dtype);
      return cufft::kReal32;
  }
}
cufft::DataType complex_type_of(const Fourier& f) {
  return type_of(is_complex(f.in) ? f.in : f.out);
}

// A plan of the library's; null inside where it has none for the problem.
struct Kept {
  cufft::Plan plan = 0;
  size_t workspace = 0;
  bool usable = false;

  Kept() = default;
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    if (usable) cufft_library().destroy(plan);
  }
};

std::shared_ptr<Kept> make_plan(const char* op, const Fourier& f) {
  const Cufft& library = cufft_library();
  auto made = std::make_shared<Kept>();
  check_cufft(library.create(&made->plan), op, "cufftCreate");
  made->usable = true;
  check_cufft(
      library.allocate_by_itself(made->plan, 0), op, "cufftSetAutoAllocation");
  std::vector<long long> sizes(f.sizes.begin(), f.sizes.end());
  // Dense memory on both sides: strides follow from the sizes.
  cufft::Status status = library.make(made->plan,
                                      static_cast<int>(sizes.size()),
                                      sizes.data(),
                                      nullptr,
                                      1,
                                      1,
                                      type_of(f.in),
                                      nullptr,
                                      1,
                                      1,
                                      type_of(f.out),
                                      f.batches,
                                      &made->workspace,
                                      complex_type_of(f));
  if (status != 0) {
    library.destroy(made->plan);
    made->usable = false;
  }
  return made;
}

using Key = std::array<int64_t, 6>;
Key key_of(const Fourier& f) {
  Key key{static_cast<int64_t>(f.in), static_cast<int64_t>(f.out), f.batches};
  std::copy(f.sizes.begin(), f.sizes.end(), key.begin() + 3);
  return key;
}

// The plans of a device, the one that was used last in front.
class Plans {
 public:
  std::shared_ptr<Kept> find(const char* op, const Fourier& f) {
    Key key = key_of(f);
    auto known = places_.find(key);
    if (known != places_.end()) {
      order_.splice(order_.begin(), order_, known->second);
      return order_.front().second;
    }
    auto made = make_plan(op, f);
    order_.emplace_front(key, made);
    places_[key] = order_.begin();
    trim();
    return made;
  }
  int64_t size() const { return static_cast<int64_t>(order_.size()); }
  void clear() {
    order_.clear();
    places_.clear();
  }
  void trim() {
    while (size() > most) {
      places_.erase(order_.back().first);
      order_.pop_back();
    }
  }

  std::mutex mutex;
  int64_t most = 4096;

 private:
  std::list<std::pair<Key, std::shared_ptr<Kept>>> order_;
  std::map<Key, decltype(order_)::iterator> places_;
};
Plans& plans_of(int device) {
  static auto& all =
      *new std::vector<Plans>(static_cast<size_t>(std::max(device_count(), 1)));
  check_device("cufft_plan_cache", device);
  return all[static_cast<size_t>(device)];
}

}  // namespace

bool has_cufft() {
  const std::string& error = cufft_library().error;
  if (TAEDA_LIKELY(error.empty())) return true;
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    warn("CUDA: Fourier transforms run Taeda's own kernel, which is slower: " +
         error);
  }
  return false;
}

bool transform(
    const char* op, const Fourier& f, void* in, void* out, int device) {
  DeviceGuard guard(device);
  use_context();
  Plans& plans = plans_of(device);
  std::shared_ptr<Kept> kept;
  {
    std::lock_guard lock(plans.mutex);
    kept = plans.find(op, f);
  }
  if (!kept->usable) return false;
  // No lock is held: taking memory may need the interpreter's.
  TensorBase workspace;
  void* scratch = nullptr;
  if (kept->workspace > 0) {
    auto bytes = static_cast<int64_t>(kept->workspace);
    Device here{DeviceType::CUDA, static_cast<int8_t>(device)};
    workspace = make_tensor(op, {&bytes, 1}, kByte, here);
    scratch = workspace.mutable_raw_data();
  }
  const Cufft& library = cufft_library();
  std::lock_guard lock(plans.mutex);
  check_cufft(library.set_stream(kept->plan, handle_of(current_stream())),
              op,
              "cufftSetStream");
  check_cufft(
      library.set_workspace(kept->plan, scratch), op, "cufftSetWorkArea");
  check_cufft(
      library.execute(
          kept->plan, in, out, f.forward ? cufft::kForward : cufft::kInverse),
      op,
      "cufftXtExec");
  finish_launch();
  return true;
}

int64_t fourier_plans(int device) {
  Plans& plans = plans_of(device);
  std::lock_guard lock(plans.mutex);
  return plans.size();
}

int64_t most_fourier_plans(int device) {
  Plans& plans = plans_of(device);
  std::lock_guard lock(plans.mutex);
  return plans.most;
}

void set_most_fourier_plans(int device, int64_t most) {
  TAEDA_CHECK(
      most >= 0, "Non-negative plan cache max_size: expected, got ", most);
  Plans& plans = plans_of(device);
  std::lock_guard lock(plans.mutex);
  plans.most = most;
  plans.trim();
}

void clear_fourier_plans(int device) {
  Plans& plans = plans_of(device);
  std::lock_guard lock(plans.mutex);
  plans.clear();
}

}  // namespace taeda::cuda
