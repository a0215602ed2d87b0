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

bool touch(const void* p, size_t bytes, bool writes) {
  Arena& arena = Arena::get();
  auto address = reinterpret_cast<Address>(p);
  auto refuse = [&] {
    Machine::get().report({address, bytes, writes, 0, 0, 0});
    return false;
  };
  if (!arena.holds(address)) return refuse();
  unsigned char* states =
      arena.checked.states + (address - arena.checked.begin);
  unsigned char least = writes ? kTaken : kWritten;
  for (size_t i = 0; i < bytes; ++i) {
    if (states[i] < least) return refuse();
  }
  if (writes) std::memset(states, kWritten, bytes);
  return true;
}

// A tensor's memory.
class Side {
 public:
  Side(const Object& t, void* data)
      : sizes(sizes_of(t)),
        strides_(strides_of(t)),
        type_(one<int>(t, cudnn::kTensorType)),
        data_(static_cast<char*>(data)) {}

  double read(const Sizes& at) const {
    const char* p = place(at);
    if (!touch(p, bytes(), false)) return 0;
    auto as = [&]<class T>(T value) {
      std::memcpy(&value, p, sizeof(T));
      return static_cast<double>(value);
    };
    if (type_ == cudnn::kReal32) return as(float{});
    if (type_ == cudnn::kReal64) return as(double{});
    if (type_ == cudnn::kReal16) {
      taeda::Half value;
      std::memcpy(&value, p, 2);
      return static_cast<float>(value);
    }
    taeda::BFloat16 value;
    std::memcpy(&value, p, 2);
    return static_cast<float>(value);
  }
  void write(const Sizes& at, double value) const {
    char* p = place(at);
    if (!touch(p, bytes(), true)) return;
    auto put = [p](auto v) { std::memcpy(p, &v, sizeof(v)); };
    auto single = static_cast<float>(value);
    if (type_ == cudnn::kReal32) return put(single);
    if (type_ == cudnn::kReal64) return put(value);
    if (type_ == cudnn::kReal16) return put(taeda::Half(single));
    put(taeda::BFloat16(single));
  }

  Sizes sizes;

 private:
  size_t bytes() const {
    return type_ == cudnn::kReal64 ? 8 : type_ == cudnn::kReal32 ? 4 : 2;
  }
  char* place(const Sizes& at) const {
    int64_t i = 0;
    for (size_t d = 0; d < at.size(); ++d) i += at[d] * strides_[d];
    return data_ + i * static_cast<int64_t>(bytes());
  }

  Sizes strides_;
  int type_;
  char* data_;
};

// Calls f for each index below `sizes`.
template <class F>
void each_index(const Sizes& sizes, F&& f) {
  Sizes at(sizes.size(), 0);
  for (int64_t n : sizes) {
    if (n == 0) return;
  }
  while (true) {
    f(at);
    size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

// Every product x * w that belongs to an element of y, added to the element
// that is computed.
class Running {
 public:
  Running(const Problem& p, void* x, void* w, void* y)
      : kind_(p.kind), x_(*p.x, x), w_(*p.w, w), y_(*p.y, y) {
    pads_ = list<int64_t>(*p.convolution, cudnn::kPaddingBefore);
    steps_ = list<int64_t>(*p.convolution, cudnn::kStrides);
    dilations_ = list<int64_t>(*p.convolution, cudnn::kDilations);
  }
  void run() {
    const Side& out = kind_ == cudnn::kForward         ? y_
                      : kind_ == cudnn::kInputGradient ? x_
                                                       : w_;
    std::map<Sizes, double> sums;
    each_index(out.sizes, [&](const Sizes& at) { sums[at] = 0; });
    each_index(y_.sizes, [&](const Sizes& y) {
      each_index(w_.sizes, [&](const Sizes& w) {
        if (w[0] == y[1]) add(y, w, sums);
      });
    });
    for (const auto& [at, sum] : sums) out.write(at, sum);
  }

 private:
  void add(const Sizes& y, const Sizes& w, std::map<Sizes, double>& sums) {
    int64_t groups = x_.sizes[1] / w_.sizes[1];
    int64_t group = y[1] / (w_.sizes[0] / groups);
    Sizes x{y[0], group * w_.sizes[1] + w[1]};
    for (size_t d = 2; d < y.size(); ++d) {
      x.push_back(y[d] * steps_[d - 2] + w[d] * dilations_[d - 2] -
                  pads_[d - 2]);
      if (x[d] < 0 || x[d] >= x_.sizes[d]) return;
    }
    if (kind_ == cudnn::kForward) sums[y] += x_.read(x) * w_.read(w);
    if (kind_ == cudnn::kInputGradient) sums[x] += y_.read(y) * w_.read(w);
    if (kind_ == cudnn::kWeightGradient) sums[w] += x_.read(x) * y_.read(y);
  }

  int kind_;
  Side x_, w_, y_;
  Sizes pads_, steps_, dilations_;
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
