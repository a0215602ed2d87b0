// One pass over a parameter, its gradient and its state, per ISA level.
#pragma once

#include <cstdint>

namespace taeda {

enum class OptimizerRule : uint8_t { kSgd, kAdam, kAdagrad, kRmsprop };

// The numbers of a step, with what depends on the step count worked in.
struct OptimizerNumbers {
  double lr = 0;
  double weight_decay = 0;
  double eps = 0;
  double momentum = 0;          // SGD and RMSprop
  double dampening = 0;         // SGD
  double beta1 = 0, beta2 = 0;  // Adam; RMSprop's alpha is beta2
  double step_size = 0;         // Adam: lr / (1 - beta1^t)
  double correction = 1;        // Adam: sqrt(1 - beta2^t)
  double grad_scale = 1;        // gradients are divided by it, in memory too
  bool scaled = false;
  bool maximize = false;
  bool nesterov = false;
  bool first = false;      // SGD: the buffer starts as the gradient
  bool decoupled = false;  // Adam: weight decay off the parameter
};

// Pointers: parameter, gradient, then state; the absent ones are null.
// SGD: buffer. Adam: average, square average, its maximum. Adagrad: sum.
// RMSprop: square average, average, buffer.
inline constexpr int kOptimizerPointers = 5;
using OptimizerFn = void (*)(void* const* pointers,
                             int64_t n,
                             const OptimizerNumbers& numbers);

// By rule, then float, double, bfloat16, half.
using OptimizerTable = OptimizerFn[4][4];

namespace isa_default {
extern const OptimizerTable kOptimizerTable;
}
namespace isa_avx2 {
extern const OptimizerTable kOptimizerTable;
}
namespace isa_avx512 {
extern const OptimizerTable kOptimizerTable;
}

}  // namespace taeda
