// cuDNN's backend interface, under its names: descriptors keep what they are
// told, and a plan of a convolution computes it in double, element by element.
//
// It is as strict as the library: attributes of wrong types, descriptors that
// are used before they are finished, sizes that do not belong together, and
// tensors that are not dense are refused. There are three engines: the first
// (tensor cores, sums in any order) takes even channels alone, the second is
// slow and exact, the third is a fallback for what lies at odd addresses. What
// is read and written passes the memory checker.
#include "emulator.h"

#include <taeda/c10/cuda/cudnn.h>
#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/half.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

using namespace emulator;
namespace cudnn = taeda::cuda::cudnn;

#define EXPORT extern "C" __attribute__((visibility("default"))) cudnn::Status

namespace taeda::cuda::cudnn {

struct HandleObject {
  void* stream = nullptr;
};
struct DescriptorObject {
  struct Value {
    int type = -1;
    int64_t count = 0;
    std::vector<char> bytes;
  };
  int kind = 0;
  bool finished = false;
  int engine = -1;  // of engines and their choices
  std::map<int, Value> values;
};

}  // namespace taeda::cuda::cudnn

namespace {

using Object = cudnn::DescriptorObject;

size_t size_of_type(int type) {
  switch (type) {
    case cudnn::kDataTypeType:
    case cudnn::kFloatType:
    case cudnn::kModeType:
    case cudnn::kHeuristicsModeType:
    case cudnn::kNoteType:
      return 4;
    default:
      return 8;
  }
}

template <class T>
std::vector<T> list(const Object& o, int attribute) {
  auto found = o.values.find(attribute);
  if (found == o.values.end()) return {};
  std::vector<T> made(static_cast<size_t>(found->second.count));
  std::memcpy(made.data(), found->second.bytes.data(), made.size() * sizeof(T));
  return made;
}
template <class T>
T one(const Object& o, int attribute) {
  std::vector<T> all = list<T>(o, attribute);
  return all.empty() ? T{} : all[0];
}

// The attributes of a kind, with their types.
std::map<int, int> attributes_of(int kind) {
  using namespace cudnn;
  switch (kind) {
    case kTensor:
      return {{kTensorType, kDataTypeType},
              {kTensorSizes, kInt64Type},
              {kTensorStrides, kInt64Type},
              {kTensorId, kInt64Type},
              {kTensorAlignment, kInt64Type}};
    case kConvolution:
      return {{kComputesIn, kDataTypeType},
              {kMode, kModeType},
              {kDilations, kInt64Type},
              {kStrides, kInt64Type},
              {kPaddingBehind, kInt64Type},
              {kPaddingBefore, kInt64Type},
              {kSpatialDims, kInt64Type}};
    case kForward:
    case kInputGradient:
    case kWeightGradient: {
      int first = kForwardAlpha + 6 * (kind == kInputGradient) +
                  12 * (kind == kWeightGradient);
      std::map<int, int> all{{first, -1}, {first + 1, -1}};
      for (int i = 2; i < 6; ++i) all[first + i] = kDescriptorType;
      return all;
    }
    case kGraph:
      return {{kGraphHandle, kHandleType}, {kGraphOperations, kDescriptorType}};
    case kHeuristics:
      return {{kHeuristicsMode, kHeuristicsModeType},
              {kHeuristicsGraph, kDescriptorType}};
    case kPlan:
      return {{kPlanHandle, kHandleType}, {kPlanChoice, kDescriptorType}};
    case kPointers:
      return {{kPointerIds, kInt64Type},
              {kPointersOf, kPointerType},
              {kWorkspace, kPointerType}};
    default:
      return {};
  }
}

// The tensors of an operation by their roles, whatever it computes.
struct Problem {
  int kind = 0;
  const Object *convolution = nullptr, *x = nullptr, *w = nullptr, *y = nullptr;
};
Problem problem_of(const Object& operation) {
  Problem p;
  p.kind = operation.kind;
  int first = cudnn::kForwardAlpha + 6 * (p.kind == cudnn::kInputGradient) +
              12 * (p.kind == cudnn::kWeightGradient);
  auto part = [&](int attribute) {
    return one<cudnn::Descriptor>(operation, attribute);
  };
  p.convolution = part(first + 2);
  p.w = part(first + 3);
  p.x = part(first + 4);
  p.y = part(first + 5);
  return p;
}
const Object* operation_of(const Object& graph) {
  return one<cudnn::Descriptor>(graph, cudnn::kGraphOperations);
}

using Sizes = std::vector<int64_t>;
Sizes sizes_of(const Object& t) {
  return list<int64_t>(t, cudnn::kTensorSizes);
}
Sizes strides_of(const Object& t) {
  return list<int64_t>(t, cudnn::kTensorStrides);
}

// In rows, or with channels innermost.
bool is_dense(const Object& t, bool channels_last) {
  Sizes sizes = sizes_of(t), strides = strides_of(t);
  std::vector<size_t> order(sizes.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  if (channels_last)
    std::rotate(&order[1], &order[2], &order[0] + order.size());
  int64_t next = 1;
  for (size_t k = order.size(); k-- > 0;) {
    if (strides[order[k]] != next) return false;
    next *= sizes[order[k]];
  }
  return true;
}

bool is_right(const Problem& p) {
  Sizes x = sizes_of(*p.x), w = sizes_of(*p.w), y = sizes_of(*p.y);
  auto of = [&](int attribute) {
    return list<int64_t>(*p.convolution, attribute);
  };
  Sizes pads = of(cudnn::kPaddingBefore), behind = of(cudnn::kPaddingBehind);
  Sizes steps = of(cudnn::kStrides), dilations = of(cudnn::kDilations);
  size_t dims = x.size();
  int64_t spatial = one<int64_t>(*p.convolution, cudnn::kSpatialDims);
  bool ranks = (dims == 4 || dims == 5) && w.size() == dims &&
               y.size() == dims && spatial == static_cast<int64_t>(dims) - 2 &&
               pads.size() == dims - 2 && behind.size() == dims - 2 &&
               steps.size() == dims - 2 && dilations.size() == dims - 2;
  if (!ranks || x[0] != y[0] || w[0] != y[1]) return false;
  if (w[1] == 0 || x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0) return false;
  for (size_t d = 0; d + 2 < dims; ++d) {
    int64_t room =
        x[d + 2] + pads[d] + behind[d] - dilations[d] * (w[d + 2] - 1) - 1;
    if (room < 0 || y[d + 2] != room / steps[d] + 1) return false;
  }
  int type = one<int>(*p.x, cudnn::kTensorType);
  int wanted = type == cudnn::kReal64 ? cudnn::kReal64 : cudnn::kReal32;
  return one<int>(*p.w, cudnn::kTensorType) == type &&
         one<int>(*p.y, cudnn::kTensorType) == type &&
         one<int>(*p.convolution, cudnn::kComputesIn) == wanted &&
         one<int>(*p.convolution, cudnn::kMode) == cudnn::kCrossCorrelation;
}

constexpr int kEngines = 3;
std::atomic<int> ran[kEngines];  // how often each did
bool has_engine(const Problem& p, int engine) {
  bool dense = false;
  for (bool last : {false, true}) {
    dense |=
        is_dense(*p.x, last) && is_dense(*p.w, last) && is_dense(*p.y, last);
  }
  if (!dense) return false;
  bool aligned = true;
  for (const Object* t : {p.x, p.w, p.y}) {
    aligned &= one<int64_t>(*t, cudnn::kTensorAlignment) >= 16;
  }
  if (engine == 0) return aligned && sizes_of(*p.x)[1] % 2 == 0;
  return engine == 2 || aligned;
}
int64_t workspace_of(int engine) { return engine == 0 ? 4096 : 0; }

// A tensor's memory. Missing spatial dims are of size 1.
class Side {
 public:
  Side(const Object& t, void* data)
      : type_(one<int>(t, cudnn::kTensorType)),
        data_(static_cast<char*>(data)) {
    Sizes own = sizes_of(t), steps = strides_of(t);
    for (size_t d = 0; d < own.size(); ++d) {
      size_t at = d < 2 ? d : d + 5 - own.size();
      sizes[at] = own[d];
      strides_[at] = steps[d];
    }
  }

  int64_t place(const std::array<int64_t, 5>& at) const {
    int64_t i = 0;
    for (size_t d = 0; d < 5; ++d) i += at[d] * strides_[d];
    return i;
  }
  int64_t count() const {
    int64_t all = 1;
    for (int64_t n : sizes) all *= n;
    return all;
  }
  // Dense memory: every element, in the order of the addresses.
  std::vector<double> read() const {
    std::vector<double> all(static_cast<size_t>(count()));
    if (!touch(data_, bytes() * all.size(), false)) return all;
    for (size_t i = 0; i < all.size(); ++i) all[i] = load(data_ + i * bytes());
    return all;
  }
  void write(const std::vector<double>& all) const {
    if (!touch(data_, bytes() * all.size(), true)) return;
    for (size_t i = 0; i < all.size(); ++i) {
      store(data_ + i * bytes(), all[i]);
    }
  }

  std::array<int64_t, 5> sizes{1, 1, 1, 1, 1};

 private:
  size_t bytes() const {
    return type_ == cudnn::kReal64 ? 8 : type_ == cudnn::kReal32 ? 4 : 2;
  }
  template <class T>
  static T at(const char* p) {
    T value;
    std::memcpy(&value, p, sizeof(T));
    return value;
  }
  double load(const char* p) const {
    if (type_ == cudnn::kReal32) return at<float>(p);
    if (type_ == cudnn::kReal64) return at<double>(p);
    if (type_ == cudnn::kReal16) return static_cast<float>(at<taeda::Half>(p));
    return static_cast<float>(at<taeda::BFloat16>(p));
  }
  void store(char* p, double value) const {
    auto put = [p](auto v) { std::memcpy(p, &v, sizeof(v)); };
    auto single = static_cast<float>(value);
    if (type_ == cudnn::kReal32) return put(single);
    if (type_ == cudnn::kReal64) return put(value);
    if (type_ == cudnn::kReal16) return put(taeda::Half(single));
    put(taeda::BFloat16(single));
  }

  std::array<int64_t, 5> strides_{};
  int type_;
  char* data_;
};

// Calls f for each index below `sizes`.
template <class F>
void each_index(const std::array<int64_t, 5>& sizes, F&& f) {
  std::array<int64_t, 5> at{};
  auto& [a, b, c, d, e] = at;
  for (a = 0; a < sizes[0]; ++a)
    for (b = 0; b < sizes[1]; ++b)
      for (c = 0; c < sizes[2]; ++c)
        for (d = 0; d < sizes[3]; ++d)
          for (e = 0; e < sizes[4]; ++e) f(at);
}

// Every product x * w that belongs to an element of y, added to the element
// that is computed.
class Running {
 public:
  Running(const Problem& p, void* x, void* w, void* y)
      : kind_(p.kind), x_(*p.x, x), w_(*p.w, w), y_(*p.y, y) {
    take(*p.convolution, cudnn::kPaddingBefore, 0, pads_);
    take(*p.convolution, cudnn::kStrides, 1, steps_);
    take(*p.convolution, cudnn::kDilations, 1, dilations_);
  }
  void run() {
    using enum cudnn::Kind;
    const Side& out = kind_ == kForward         ? y_
                      : kind_ == kInputGradient ? x_
                                                : w_;
    std::vector<double> sums(static_cast<size_t>(out.count()), 0);
    x_values_ = kind_ == kInputGradient ? sums : x_.read();
    w_values_ = kind_ == kWeightGradient ? sums : w_.read();
    y_values_ = kind_ == kForward ? sums : y_.read();
    int64_t groups = x_.sizes[1] / w_.sizes[1];
    int64_t of_group = w_.sizes[0] / groups;
    each_index(y_.sizes, [&](const std::array<int64_t, 5>& at) {
      std::array<int64_t, 5> window = w_.sizes;
      window[0] = 1;
      int64_t first = at[1] / of_group * w_.sizes[1];
      each_index(window, [&](std::array<int64_t, 5> k) {
        k[0] = at[1];
        add(at, k, first);
      });
    });
    out.write(kind_ == kForward         ? y_values_
              : kind_ == kInputGradient ? x_values_
                                        : w_values_);
  }

 private:
  static void take(const Object& convolution,
                   int attribute,
                   int64_t missing,
                   std::array<int64_t, 3>& to) {
    Sizes own = list<int64_t>(convolution, attribute);
    to.fill(missing);
    std::copy(own.begin(), own.end(), to.end() - own.size());
  }
  void add(const std::array<int64_t, 5>& of_y,
           const std::array<int64_t, 5>& of_w,
           int64_t first) {
    std::array<int64_t, 5> of_x{of_y[0], first + of_w[1]};
    for (size_t d = 0; d < 3; ++d) {
      int64_t at =
          of_y[d + 2] * steps_[d] + of_w[d + 2] * dilations_[d] - pads_[d];
      if (at < 0 || at >= x_.sizes[d + 2]) return;
      of_x[d + 2] = at;
    }
    double& a = x_values_[static_cast<size_t>(x_.place(of_x))];
    double& b = w_values_[static_cast<size_t>(w_.place(of_w))];
    double& c = y_values_[static_cast<size_t>(y_.place(of_y))];
    if (kind_ == cudnn::kForward) c += a * b;
    if (kind_ == cudnn::kInputGradient) a += c * b;
    if (kind_ == cudnn::kWeightGradient) b += a * c;
  }

  int kind_;
  Side x_, w_, y_;
  std::array<int64_t, 3> pads_, steps_, dilations_;
  std::vector<double> x_values_, w_values_, y_values_;  // by addresses
};

}  // namespace

// For tests: how often an engine ran.
extern "C" __attribute__((visibility("default"))) int emulated_convolutions(
    int engine) {
  return ran[engine];
}

extern "C" __attribute__((visibility("default"))) size_t cudnnGetVersion() {
  return 90100;
}
EXPORT cudnnCreate(cudnn::Handle* out) {
  *out = new cudnn::HandleObject;
  return 0;
}
EXPORT cudnnSetStream(cudnn::Handle handle, void* stream) {
  handle->stream = stream;
  return 0;
}
EXPORT cudnnBackendCreateDescriptor(int kind, cudnn::Descriptor* out) {
  *out = new Object;
  (*out)->kind = kind;
  return 0;
}
EXPORT cudnnBackendDestroyDescriptor(cudnn::Descriptor descriptor) {
  delete descriptor;
  return 0;
}

EXPORT cudnnBackendSetAttribute(cudnn::Descriptor d,
                                int attribute,
                                int type,
                                int64_t count,
                                const void* values) {
  std::map<int, int> known = attributes_of(d->kind);
  auto found = known.find(attribute);
  if (d->finished || found == known.end() || count < 1) {
    return cudnn::kBadParameter;
  }
  bool factor = found->second == -1 &&
                (type == cudnn::kFloatType || type == cudnn::kDoubleType);
  if (!factor && found->second != type) return cudnn::kBadParameter;
  Object::Value value{type, count, {}};
  auto* bytes = static_cast<const char*>(values);
  value.bytes.assign(bytes,
                     bytes + static_cast<size_t>(count) * size_of_type(type));
  if (type == cudnn::kDescriptorType) {
    for (int64_t i = 0; i < count; ++i) {
      auto* other = static_cast<const cudnn::Descriptor*>(values)[i];
      if (!other->finished) return cudnn::kBadParameter;
    }
  }
  d->values[attribute] = std::move(value);
  return 0;
}

EXPORT cudnnBackendFinalize(cudnn::Descriptor d) {
  // The workspace of pointers may be null, but is told.
  for (auto [attribute, type] : attributes_of(d->kind)) {
    if (!d->values.contains(attribute)) return cudnn::kBadParameter;
  }
  bool operates = d->kind == cudnn::kForward ||
                  d->kind == cudnn::kInputGradient ||
                  d->kind == cudnn::kWeightGradient;
  if (operates && !is_right(problem_of(*d))) return cudnn::kBadParameter;
  if (d->kind == cudnn::kPlan) {
    auto* choice = one<cudnn::Descriptor>(*d, cudnn::kPlanChoice);
    auto* graph = one<cudnn::Descriptor>(*choice, cudnn::kHeuristicsGraph);
    if (!has_engine(problem_of(*operation_of(*graph)), choice->engine)) {
      return cudnn::kNotSupported + 7;
    }
    d->engine = choice->engine;
  }
  d->finished = true;
  return 0;
}

EXPORT cudnnBackendGetAttribute(cudnn::Descriptor d,
                                int attribute,
                                int type,
                                int64_t wanted,
                                int64_t* found,
                                void* values) {
  auto* places = static_cast<cudnn::Descriptor*>(values);
  if (attribute == cudnn::kHeuristicsResults && d->finished) {
    bool fallback = one<int>(*d, cudnn::kHeuristicsMode) == cudnn::kFallback;
    *found = fallback ? 1 : kEngines - 1;
    for (int i = 0; i < std::min(wanted, *found); ++i) {
      places[i]->engine = fallback ? kEngines - 1 : i;
      places[i]->values[cudnn::kHeuristicsGraph] =
          d->values.at(cudnn::kHeuristicsGraph);
      places[i]->finished = true;
    }
    return 0;
  }
  if (attribute == cudnn::kEngineOfChoice && wanted == 1) {
    places[0]->engine = d->engine;
    *found = 1;
    return 0;
  }
  if (attribute == cudnn::kEngineNotes && type == cudnn::kNoteType) {
    const int notes[] = {cudnn::kTensorCore, cudnn::kNotDeterministic};
    *found = d->engine == 0 ? 2 : 0;
    std::memcpy(values,
                notes,
                sizeof(int) * static_cast<size_t>(std::min(wanted, *found)));
    return 0;
  }
  if (attribute == cudnn::kPlanWorkspace && type == cudnn::kInt64Type) {
    int64_t bytes = workspace_of(d->engine);
    std::memcpy(values, &bytes, sizeof(bytes));
    *found = 1;
    return 0;
  }
  return cudnn::kBadParameter;
}

EXPORT cudnnBackendExecute(cudnn::Handle handle,
                           cudnn::Descriptor plan,
                           cudnn::Descriptor pointers) {
  std::lock_guard guard(Machine::get().mutex);
  if (!plan->finished || !pointers->finished) return cudnn::kBadParameter;
  auto* choice = one<cudnn::Descriptor>(*plan, cudnn::kPlanChoice);
  auto* graph = one<cudnn::Descriptor>(*choice, cudnn::kHeuristicsGraph);
  Problem problem = problem_of(*operation_of(*graph));
  Sizes ids = list<int64_t>(*pointers, cudnn::kPointerIds);
  auto data = list<void*>(*pointers, cudnn::kPointersOf);
  if (ids.size() != data.size()) return cudnn::kBadParameter;
  auto memory_of = [&](const Object& t) -> void* {
    auto at =
        std::find(ids.begin(), ids.end(), one<int64_t>(t, cudnn::kTensorId));
    return at == ids.end() ? nullptr
                           : data[static_cast<size_t>(at - ids.begin())];
  };
  for (const Object* t : {problem.x, problem.w, problem.y}) {
    auto alignment =
        static_cast<uint64_t>(one<int64_t>(*t, cudnn::kTensorAlignment));
    auto at = reinterpret_cast<uint64_t>(memory_of(*t));
    if (at == 0 || at % alignment != 0) return cudnn::kBadParameter;
  }
  void* scratch = one<void*>(*pointers, cudnn::kWorkspace);
  auto bytes = static_cast<size_t>(workspace_of(plan->engine));
  if (bytes > 0 && scratch == nullptr) return cudnn::kBadParameter;
  auto call = std::make_shared<Running>(problem,
                                        memory_of(*problem.x),
                                        memory_of(*problem.w),
                                        memory_of(*problem.y));
  auto run = [call, scratch, bytes]() -> Result {
    Opened opened;
    Machine::get().running = "cudnnBackendExecute";
    Machine::get().reported = false;
    if (bytes > 0 && touch(scratch, bytes, true)) {
      std::memset(scratch, 0x5a, bytes);
    }
    call->run();
    Machine::get().running.clear();
    return 0;
  };
  ++ran[plan->engine];
  Result status = Machine::get().enqueue(handle->stream, {"convolution", run});
  return status == 0 ? 0 : 5000;  // CUDNN_STATUS_EXECUTION_FAILED
}
