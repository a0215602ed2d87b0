// See Note [Convolutions by cuDNN].
#include <taeda/aten/native/cuda/cudnn_plans.h>

#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cuda/program.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/cuda/cudnn.h>
#include <taeda/c10/cuda/stream.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace taeda::cuda {

namespace {

constexpr size_t kMostProblems = 1024;
constexpr int64_t kMostEngines = 64;
constexpr int kTrials = 3;

// Thrown inside of this file where the library has no way to do it.
struct NotSupported {};

void check_cudnn(cudnn::Status status, const char* op, const char* call) {
  if (status == 0) return;
  // What a GPU or a version lacks is told in many numbers.
  if (status >= cudnn::kNotSupported) throw NotSupported();
  TAEDA_CHECK(
      false, op, ": CUDA error: cuDNN status ", status, " when calling ", call);
}

class Described {
 public:
  Described(const char* op, cudnn::Kind kind) : op_(op) {
    check_cudnn(cudnn_library().descriptor_create(kind, &made_),
                op,
                "cudnnBackendCreateDescriptor");
  }
  Described(Described&& other) noexcept
      : op_(other.op_), made_(std::exchange(other.made_, nullptr)) {}
  Described& operator=(Described&& other) noexcept {
    std::swap(made_, other.made_);
    return *this;
  }
  ~Described() {
    if (made_ != nullptr) cudnn_library().descriptor_destroy(made_);
  }

  cudnn::Descriptor get() const { return made_; }
  Described& set(cudnn::Attribute what,
                 cudnn::Type type,
                 int64_t count,
                 const void* values) {
    check_cudnn(cudnn_library().set(made_, what, type, count, values),
                op_,
                "cudnnBackendSetAttribute");
    return *this;
  }
  template <class T>
  Described& set(cudnn::Attribute what, cudnn::Type type, T value) {
    return set(what, type, 1, &value);
  }
  Described& set(cudnn::Attribute what, const DimVector& values) {
    auto count = static_cast<int64_t>(values.size());
    return set(what, cudnn::kInt64Type, count, values.data());
  }
  Described& set(cudnn::Attribute what, const Described& other) {
    return set(what, cudnn::kDescriptorType, other.get());
  }
  Described& finish() {
    check_cudnn(cudnn_library().finish(made_), op_, "cudnnBackendFinalize");
    return *this;
  }
  // How many there are.
  int64_t read(cudnn::Attribute what,
               cudnn::Type type,
               int64_t wanted,
               void* values) const {
    int64_t found = 0;
    check_cudnn(cudnn_library().get(made_, what, type, wanted, &found, values),
                op_,
                "cudnnBackendGetAttribute");
    return std::min(found, wanted);
  }

 private:
  const char* op_;
  cudnn::Descriptor made_ = nullptr;
};

cudnn::DataType type_of(ScalarType dtype) {
  switch (dtype) {
    case kDouble:
      return cudnn::kReal64;
    case kHalf:
      return cudnn::kReal16;
    case kBFloat16:
      return cudnn::kBrain16;
    default:
      TAEDA_INTERNAL_ASSERT(dtype == kFloat, "no convolutions of ", dtype);
      return cudnn::kReal32;
  }
}

// Up to 16: the widest access of a thread.
int64_t alignment_of(const void* data) {
  auto at = reinterpret_cast<uintptr_t>(data) | 16;
  return static_cast<int64_t>(at & (~at + 1));
}

enum Id : int64_t { kX = 1, kW, kY };

Described tensor_of(const char* op,
                    ScalarType dtype,
                    const ConvolutionSide& side,
                    Id id) {
  Described made(op, cudnn::kTensor);
  made.set(cudnn::kTensorType, cudnn::kDataTypeType, type_of(dtype))
      .set(cudnn::kTensorSizes, side.sizes)
      .set(cudnn::kTensorStrides, side.strides)
      .set(cudnn::kTensorId, cudnn::kInt64Type, static_cast<int64_t>(id))
      .set(cudnn::kTensorAlignment, cudnn::kInt64Type, alignment_of(side.data))
      .finish();
  return made;
}

// The attributes of a way's operation.
struct Operation {
  cudnn::Kind kind;
  cudnn::Attribute alpha, beta, convolution, x, w, y;
};
constexpr Operation kOperations[] = {
    {cudnn::kForward,
     cudnn::kForwardAlpha,
     cudnn::kForwardBeta,
     cudnn::kForwardConvolution,
     cudnn::kForwardX,
     cudnn::kForwardW,
     cudnn::kForwardY},
    {cudnn::kInputGradient,
     cudnn::kInputAlpha,
     cudnn::kInputBeta,
     cudnn::kInputConvolution,
     cudnn::kInputX,
     cudnn::kInputW,
     cudnn::kInputY},
    {cudnn::kWeightGradient,
     cudnn::kWeightAlpha,
     cudnn::kWeightBeta,
     cudnn::kWeightConvolution,
     cudnn::kWeightX,
     cudnn::kWeightW,
     cudnn::kWeightY},
};

Described convolution_of(const char* op, const Convolution& c) {
  Described made(op, cudnn::kConvolution);
  cudnn::DataType in = c.dtype == kDouble ? cudnn::kReal64 : cudnn::kReal32;
  auto dims = static_cast<int64_t>(c.stride.size());
  made.set(cudnn::kSpatialDims, cudnn::kInt64Type, dims)
      .set(cudnn::kComputesIn, cudnn::kDataTypeType, in)
      .set(cudnn::kMode, cudnn::kModeType, cudnn::kCrossCorrelation)
      .set(cudnn::kPaddingBefore, c.padding)
      .set(cudnn::kPaddingBehind, c.padding)
      .set(cudnn::kDilations, c.dilation)
      .set(cudnn::kStrides, c.stride)
      .finish();
  return made;
}

// What may not be in an engine's notes.
struct Allowed {
  bool tf32 = true, any_order = true;
};
Allowed allowed_for(const Convolution& c) {
  bool tf32 = c.dtype != kFloat || settings::convolution_tf32.load();
  bool deterministic =
      settings::cudnn_deterministic.load() || settings::deterministic.load();
  return {tf32, !deterministic};
}

bool is_allowed(const char* op, const Described& choice, Allowed allowed) {
  Described engine(op, cudnn::kEngine);
  cudnn::Descriptor place = engine.get();
  choice.read(cudnn::kEngineOfChoice, cudnn::kDescriptorType, 1, &place);
  std::array<int, 16> notes{};
  int64_t count = engine.read(cudnn::kEngineNotes,
                              cudnn::kNoteType,
                              static_cast<int64_t>(notes.size()),
                              notes.data());
  for (int64_t i = 0; i < count; ++i) {
    int note = notes[static_cast<size_t>(i)];
    if (note == cudnn::kNotDeterministic && !allowed.any_order) return false;
    bool narrows = note == cudnn::kTensorCore || note == cudnn::kNarrowsInputs;
    if (narrows && !allowed.tf32) return false;
  }
  return true;
}

// A way that the library may go. What it was made of lives as long as it:
// whether the library copies that is said nowhere.
struct Plan {
  std::shared_ptr<std::vector<Described>> parts;
  Described choice;
  Described descriptor;
  int64_t workspace = 0;
};

// Asks the library for a problem's plans; under the device's lock.
class Planning {
 public:
  Planning(const char* op, const Convolution& c, cudnn::Handle handle)
      : op_(op), c_(c), handle_(handle) {}

  // Up to so many, in the library's order.
  std::vector<Plan> plans(size_t most) {
    std::vector<Plan> made;
    describe();
    for (cudnn::HeuristicsMode mode : {cudnn::kModeA, cudnn::kFallback}) {
      for (Described& choice : choices(mode)) {
        if (made.size() == most) return made;
        add_plan(std::move(choice), made);
      }
    }
    return made;
  }

 private:
  void describe() {
    const Operation& o = kOperations[c_.way];
    parts_->push_back(tensor_of(op_, c_.dtype, c_.x, kX));
    parts_->push_back(tensor_of(op_, c_.dtype, c_.w, kW));
    parts_->push_back(tensor_of(op_, c_.dtype, c_.y, kY));
    parts_->push_back(convolution_of(op_, c_));
    Described made(op_, o.kind), graph(op_, cudnn::kGraph);
    made.set(o.convolution, (*parts_)[3])
        .set(o.x, (*parts_)[0])
        .set(o.w, (*parts_)[1])
        .set(o.y, (*parts_)[2]);
    if (c_.dtype == kDouble) {
      made.set(o.alpha, cudnn::kDoubleType, 1.0)
          .set(o.beta, cudnn::kDoubleType, 0.0);
    } else {
      made.set(o.alpha, cudnn::kFloatType, 1.0F)
          .set(o.beta, cudnn::kFloatType, 0.0F);
    }
    made.finish();
    graph.set(cudnn::kGraphHandle, cudnn::kHandleType, handle_)
        .set(cudnn::kGraphOperations, made)
        .finish();
    parts_->push_back(std::move(made));
    parts_->push_back(std::move(graph));
  }

  std::vector<Described> choices(cudnn::HeuristicsMode mode) {
    std::vector<Described> found;
    try {
      Described heuristics(op_, cudnn::kHeuristics);
      heuristics.set(cudnn::kHeuristicsGraph, parts_->back())
          .set(cudnn::kHeuristicsMode, cudnn::kHeuristicsModeType, mode)
          .finish();
      int64_t count = 0;
      check_cudnn(cudnn_library().get(heuristics.get(),
                                      cudnn::kHeuristicsResults,
                                      cudnn::kDescriptorType,
                                      0,
                                      &count,
                                      nullptr),
                  op_,
                  "cudnnBackendGetAttribute");
      count = std::min(count, kMostEngines);
      std::vector<cudnn::Descriptor> places;
      for (int64_t i = 0; i < count; ++i) {
        found.emplace_back(op_, cudnn::kEngineChoice);
        places.push_back(found.back().get());
      }
      if (count == 0) return found;
      count = heuristics.read(cudnn::kHeuristicsResults,
                              cudnn::kDescriptorType,
                              count,
                              places.data());
      found.erase(found.begin() + count, found.end());
    } catch (const NotSupported&) {
      found.clear();
    }
    return found;
  }

  void add_plan(Described choice, std::vector<Plan>& made) {
    try {
      if (!is_allowed(op_, choice, allowed_for(c_))) return;
      Plan plan{parts_, std::move(choice), Described(op_, cudnn::kPlan)};
      plan.descriptor.set(cudnn::kPlanHandle, cudnn::kHandleType, handle_)
          .set(cudnn::kPlanChoice, plan.choice)
          .finish();
      plan.descriptor.read(
          cudnn::kPlanWorkspace, cudnn::kInt64Type, 1, &plan.workspace);
      made.push_back(std::move(plan));
    } catch (const NotSupported&) {
      // The next one may be made.
    }
  }

  const char* op_;
  const Convolution& c_;
  cudnn::Handle handle_;
  // What the graph consists of, and it itself.
  std::shared_ptr<std::vector<Described>> parts_ =
      std::make_shared<std::vector<Described>>();
};

// Of a device; under the lock.
struct Library {
  std::mutex mutex;
  cudnn::Handle handle = nullptr;
  // By problem; null where there is no plan.
  std::unordered_map<std::string, std::shared_ptr<Plan>> plans;
};
Library& library_of(int device) {
  static auto& all = *new std::vector<Library>(
      static_cast<size_t>(std::max(device_count(), 1)));
  return all[static_cast<size_t>(device)];
}

// All that the library chooses by.
std::string key_of(const Convolution& c, bool benchmark) {
  std::string key;
  auto add = [&](int64_t n) {
    key.append(reinterpret_cast<const char*>(&n), sizeof(n));
  };
  Allowed allowed = allowed_for(c);
  add(static_cast<int64_t>(c.dtype) << 8 | c.way << 4 | benchmark << 2 |
      allowed.tf32 << 1 | static_cast<int64_t>(allowed.any_order));
  for (const ConvolutionSide* side : {&c.x, &c.w, &c.y}) {
    add(alignment_of(side->data));
    for (int64_t n : side->sizes) add(n);
    for (int64_t n : side->strides) add(n);
  }
  for (const DimVector* list : {&c.stride, &c.padding, &c.dilation}) {
    for (int64_t n : *list) add(n);
  }
  return key;
}

void run(const char* op,
         const Convolution& c,
         const Plan& plan,
         Library& library,
         int device) {
  // No lock is held: taking memory may need the interpreter's.
  TensorBase workspace;
  void* scratch = nullptr;
  if (plan.workspace > 0) {
    Device here{DeviceType::CUDA, static_cast<int8_t>(device)};
    workspace = make_tensor(op, {&plan.workspace, 1}, kByte, here);
    scratch = workspace.mutable_raw_data();
  }
  std::array<int64_t, 3> ids{kX, kW, kY};
  std::array<void*, 3> data{c.x.data, c.w.data, c.y.data};
  Described pointers(op, cudnn::kPointers);
  pointers.set(cudnn::kPointerIds, cudnn::kInt64Type, 3, ids.data())
      .set(cudnn::kPointersOf, cudnn::kPointerType, 3, data.data())
      .set(cudnn::kWorkspace, cudnn::kPointerType, scratch)
      .finish();
  std::lock_guard guard(library.mutex);
  check_cudnn(
      cudnn_library().set_stream(library.handle, handle_of(current_stream())),
      op,
      "cudnnSetStream");
  check_cudnn(cudnn_library().execute(
                  library.handle, plan.descriptor.get(), pointers.get()),
              op,
              "cudnnBackendExecute");
}

// Milliseconds of the quickest of some runs; none where the plan fails.
std::optional<float> tried(const char* op,
                           const Convolution& c,
                           const Plan& plan,
                           Library& library,
                           int device) {
  std::optional<float> best;
  try {
    for (int i = 0; i < kTrials; ++i) {
      Event begin(device, true, false), end(device, true, false);
      begin.record(current_stream());
      run(op, c, plan, library, device);
      end.record(current_stream());
      end.wait();
      float took = begin.until(end);
      if (!best || took < *best) best = took;
    }
  } catch (const NotSupported&) {
    return std::nullopt;
  }
  return best;
}

std::shared_ptr<Plan> quickest(const char* op,
                               const Convolution& c,
                               std::vector<Plan>& plans,
                               Library& library,
                               int device) {
  std::optional<float> least;
  Plan* best = nullptr;
  for (Plan& plan : plans) {
    auto took = tried(op, c, plan, library, device);
    if (!took || (least && *took >= *least)) continue;
    least = took;
    best = &plan;
  }
  return best == nullptr ? nullptr : std::make_shared<Plan>(std::move(*best));
}

std::shared_ptr<Plan> plan_for(const char* op,
                               const Convolution& c,
                               Library& library,
                               int device) {
  bool benchmark =
      settings::cudnn_benchmark.load() && recording_of(current_stream()) == 0;
  std::string key = key_of(c, benchmark);
  std::vector<Plan> plans;
  {
    std::lock_guard guard(library.mutex);
    auto known = library.plans.find(key);
    if (known != library.plans.end()) return known->second;
    if (library.handle == nullptr) {
      check_cudnn(cudnn_library().create(&library.handle), op, "cudnnCreate");
    }
    auto limit = static_cast<size_t>(settings::cudnn_benchmark_limit.load());
    size_t most = !benchmark ? 1 : limit == 0 ? size_t{kMostEngines} : limit;
    try {
      plans = Planning(op, c, library.handle).plans(most);
    } catch (const NotSupported&) {
      plans.clear();
    }
  }
  std::shared_ptr<Plan> chosen;
  if (plans.size() > 1) {
    chosen = quickest(op, c, plans, library, device);
  } else if (!plans.empty()) {
    chosen = std::make_shared<Plan>(std::move(plans[0]));
  }
  std::lock_guard guard(library.mutex);
  if (library.plans.size() >= kMostProblems) library.plans.clear();
  library.plans.emplace(std::move(key), chosen);
  return chosen;
}

}  // namespace

bool has_cudnn() {
  const std::string& error = cudnn_library().error;
  if (TAEDA_LIKELY(error.empty())) return true;
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    warn("CUDA: convolutions run Taeda's own kernels, which are slower: " +
         error);
  }
  return false;
}

int64_t cudnn_version() {
  const Cudnn& library = cudnn_library();
  return library.error.empty() ? static_cast<int64_t>(library.version()) : 0;
}

bool convolve(const char* op, const Convolution& c, int device) {
  DeviceGuard guard(device);
  use_context();
  Library& library = library_of(device);
  std::shared_ptr<Plan> plan = plan_for(op, c, library, device);
  if (plan == nullptr) return false;
  try {
    run(op, c, *plan, library, device);
  } catch (const NotSupported&) {
    return false;
  }
  finish_launch();
  return true;
}

}  // namespace taeda::cuda
