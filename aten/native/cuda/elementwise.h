// Calls that compute each element of an output from elements of operands.
#pragma once

#include <taeda/aten/native/cuda/call_text.h>

namespace taeda::cuda {

// How an operand is read.
enum class Access : uint8_t {
  Linear,  // element behind element, in the order of the output
  One,     // the same element each time
  Strided,
  Number,  // handed over with the call
};

struct DeviceOperand {
  const TensorBase* tensor = nullptr;       // null for a number
  ScalarType seen = ScalarType::Undefined;  // what the formula takes
};

// Everything that one elementwise call is made of.
struct Elementwise {
  const char* op = "";            // for errors
  const void* formula = nullptr;  // whose functor it is, part of the key
  std::string_view text;          // its functors
  const char* functor = "";       // "k_add", of which "_float_of<T>" is taken
  const char* kind = "";
  ScalarType compute = ScalarType::Undefined;
  ScalarType result = ScalarType::Undefined;  // what the functor gives
};

// Numbers that go with a call: of operands, then scalars of the formula.
struct Numbers {
  static constexpr int kMost = 12;
  int count = 0;
  alignas(16) unsigned char slots[kMost][16] = {};
  void add(const Scalar& value, ScalarType type) {
    TAEDA_INTERNAL_ASSERT(count < kMost, "too many numbers in a call");
    value.store(type, slots[count++]);
  }
};

// `out` is on the current device, as are tensors among the operands. `numbers`
// holds those of the operands without a tensor, in order, then `scalars` of
// the formula.
void run_elementwise(const Elementwise& what,
                     const TensorBase& out,
                     ArrayRef<DeviceOperand> operands,
                     const Numbers& numbers,
                     int scalars);

}  // namespace taeda::cuda
