#include "plan.h"

#include <omp.h>

#include <atomic>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <taeda/c10/core/kept_forms.h>

#include "runtime.h"

namespace taeda::dnn {
namespace {

constexpr size_t kAlign = 64;
// A program uses some hundred geometries; one with ever new sizes must not grow
// for ever. Full, the cache starts afresh: rare, and cheaper than an order of
// use.
constexpr size_t kMaxPlans = 1024;

struct KeyHash {
  size_t operator()(const Key& key) const { return key.hash(); }
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans;
};

// Never destroyed: primitives may still run on other threads at exit.
Cache& cache() {
  static auto& instance = *new Cache;
  return instance;
}

dnnl::memory memory_of(const dnnl::memory::desc& desc, const void* data) {
  return dnnl::memory(desc, engine(), const_cast<void*>(data));
}

// oneDNN's name of the code behind a primitive: "brg:avx512_core",
// "x64:gemm:jit".
std::string_view implementation(const dnnl::primitive& primitive) {
  const char* name = "";
  dnnl_primitive_desc_query(
      primitive.get_primitive_desc(), dnnl_query_impl_info_str, 0, &name);
  return name;
}

}  // namespace

Buffer::Buffer(size_t bytes)
    : memory_(cpu_allocator().allocate(bytes)), bytes_(bytes) {}

Buffer::~Buffer() {
  if (memory_.deleter != nullptr) {
    memory_.deleter(memory_.context, bytes_);
  }
}

Buffer::Buffer(Buffer&& other) noexcept
    : memory_(std::exchange(other.memory_, {})), bytes_(other.bytes_) {}

Plan::Plan(dnnl::primitive primitive,
           dnnl::memory::desc scratchpad,
           std::vector<Slot> slots)
    : primitive_(std::move(primitive)),
      runs_gemm_(implementation(primitive_).find("gemm") !=
                 std::string_view::npos),
      scratchpad_(std::move(scratchpad)) {
  static std::atomic<uint64_t> made{0};
  number_ = ++made;
  const auto reserve = [&](const dnnl::memory::desc& desc) {
    const size_t offset = scratch_bytes_;
    scratch_bytes_ += (desc.get_size() + kAlign - 1) / kAlign * kAlign;
    return offset;
  };
  reserve(scratchpad_);  // at offset 0
  for (auto& slot : slots) {
    Tensor tensor{std::move(slot), {}, 0};
    const Slot& s = tensor.slot;
    if (s.user != s.inner) {
      const bool out = s.role == Role::kOutput;
      const auto& from = out ? s.inner : s.user;
      const auto& to = out ? s.user : s.inner;
      tensor.reorder = dnnl::reorder(
          dnnl::reorder::primitive_desc(engine(), from, engine(), to));
      tensor.offset = reserve(s.inner);
    }
    tensors_.push_back(std::move(tensor));
  }
}

// Null where this call has to reorder it.
std::shared_ptr<const void> Plan::kept_weight(const Tensor& tensor,
                                              const void* data,
                                              StorageImpl& storage) const {
  const auto* first = static_cast<const std::byte*>(storage.data());
  const FormKey key{number_, static_cast<const std::byte*>(data) - first};
  FormAnswer answer = find_form(storage, key);
  if (answer.form != nullptr || !answer.wanted) {
    return answer.form;
  }
  auto fresh = std::make_shared<const Buffer>(tensor.slot.inner.get_size());
  auto from = memory_of(tensor.slot.user, data);
  auto to = memory_of(tensor.slot.inner, fresh->data());
  tensor.reorder.execute(stream(), from, to);
  const std::shared_ptr<const void> form(fresh, fresh->data());
  keep_form(storage, key, form);
  return form;
}

void Plan::run(std::initializer_list<const void*> pointers, WeightId id) const {
  const Buffer scratch(scratch_bytes_);
  std::shared_ptr<const void> weight;
  std::unordered_map<int, dnnl::memory> arguments;
  const void* const* pointer = pointers.begin();
  for (const Tensor& tensor : tensors_) {
    const Slot& slot = tensor.slot;
    const void* data = *pointer++;
    if (!tensor.reorder) {
      arguments.emplace(slot.argument, memory_of(slot.inner, data));
      continue;
    }
    if (slot.role == Role::kWeight && id.storage != nullptr) {
      weight = kept_weight(tensor, data, *id.storage);
    }
    if (slot.role == Role::kWeight && weight != nullptr) {
      arguments.emplace(slot.argument, memory_of(slot.inner, weight.get()));
    } else {
      auto inner = memory_of(slot.inner, scratch.data() + tensor.offset);
      if (slot.role != Role::kOutput) {
        auto user = memory_of(slot.user, data);
        tensor.reorder.execute(stream(), user, inner);
      }
      arguments.emplace(slot.argument, std::move(inner));
    }
  }
  arguments.emplace(DNNL_ARG_SCRATCHPAD,
                    memory_of(scratchpad_, scratch.data()));
  {
    const SignalsHeld held(runs_gemm_);
    primitive_.execute(stream(), arguments);
  }
  pointer = pointers.begin();
  for (const Tensor& tensor : tensors_) {
    const void* data = *pointer++;
    if (tensor.reorder && tensor.slot.role == Role::kOutput) {
      auto inner = arguments.at(tensor.slot.argument);
      auto user = memory_of(tensor.slot.user, data);
      tensor.reorder.execute(stream(), inner, user);
    }
  }
}

std::shared_ptr<const Plan> find_plan(
    Key key, const std::function<std::unique_ptr<Plan>()>& build) {
  key.add(omp_get_max_threads());
  {
    const std::lock_guard<std::mutex> lock(cache().mutex);
    const auto found = cache().plans.find(key);
    if (found != cache().plans.end()) {
      return found->second;
    }
  }
  // Outside the lock: generating code takes milliseconds.
  std::shared_ptr<const Plan> plan;
  try {
    plan = build();
  } catch (const dnnl::error& error) {
    // v2 throws where v3 gives an empty descriptor.
    if (error.status != dnnl_unimplemented &&
        error.status != dnnl_invalid_arguments) {
      throw;
    }
  }
  const std::lock_guard<std::mutex> lock(cache().mutex);
  if (cache().plans.size() >= kMaxPlans) {
    cache().plans.clear();
  }
  return cache().plans.emplace(std::move(key), std::move(plan)).first->second;
}

}  // namespace taeda::dnn
