// A primitive made ready once for a geometry and run many times.
#pragma once

#include <dnnl.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include <taeda/aten/native/dnn/problems.h>
#include <taeda/c10/core/allocator.h>

namespace taeda::dnn {

// Memory of the CPU's caching allocator, 64-byte aligned.
class Buffer {
 public:
  explicit Buffer(size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_.data); }

 private:
  DataPtr memory_;
  size_t bytes_;
};

enum class Role : uint8_t {
  kInput,
  kWeight,  // an input whose reordered form may be kept
  kOutput,
};

// One tensor of a primitive: how the caller has it, how the primitive wants it.
struct Slot {
  int argument;  // DNNL_ARG_*
  Role role;
  dnnl::memory::desc user;
  dnnl::memory::desc inner;
};

class Plan {
 public:
  Plan(dnnl::primitive primitive,
       dnnl::memory::desc scratchpad,
       std::vector<Slot> slots);

  // One pointer for each slot, in their order.
  void run(std::initializer_list<const void*> pointers, WeightId id) const;

 private:
  struct Tensor {
    Slot slot;
    dnnl::reorder reorder;  // empty where user == inner
    size_t offset = 0;      // of the reordered form in the scratch memory
  };

  std::shared_ptr<const void> kept_weight(const Tensor& tensor,
                                          const void* data,
                                          StorageImpl& storage) const;

  dnnl::primitive primitive_;
  bool runs_gemm_;  // see Note [Signals and oneDNN's gemm]
  dnnl::memory::desc scratchpad_;
  std::vector<Tensor> tensors_;
  size_t scratch_bytes_ = 0;
  uint64_t number_;  // of plans made; an address may be used again
};

// Everything that a primitive depends on, as numbers; the plan cache's key.
class Key {
 public:
  Key& add(int64_t value) {
    hash_ = (hash_ ^ static_cast<uint64_t>(value)) * 0x100000001b3u;  // FNV
    hash_ ^= hash_ >> 29;
    words_.push_back(value);
    return *this;
  }
  template <typename Range>
  Key& add_all(const Range& values) {
    for (const auto value : values) {
      add(value);
    }
    return *this;
  }
  bool operator==(const Key& other) const { return words_ == other.words_; }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
  std::vector<int64_t> words_;
};

// The plan for a key, built by `build` where it is not there yet. Null where
// `build` found no implementation; that answer is kept too. The key's thread
// count is added here: primitives divide their work when they are made.
std::shared_ptr<const Plan> find_plan(
    Key key, const std::function<std::unique_ptr<Plan>()>& build);

}  // namespace taeda::dnn
