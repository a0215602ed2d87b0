// Forward mode as a level: tangents travel with their tensors.
#pragma once

#include <taeda/aten/core/level.h>

namespace taeda::functorch {

// Note [Tangents]
// A dual tensor is no wrapper: it is the primal (an alias of it) with a tangent
// kept beside it under the level that it belongs to. A call runs on the primals
// as they are, in the levels outside, and those results are given tangents.
// Levels outside see no tangents but their own, so nested levels do not mix,
// and reverse mode records primals and tangents alike.
class TAEDA_API DualLevel final : public Level {
 public:
  void call(const OperatorEntry& op, Stack& stack) override;
  const char* kind() const override { return "dual"; }

  // An alias of `primal` with a tangent. RuntimeError unless shape and dtype
  // agree.
  TensorBase make_dual(const TensorBase& primal, const TensorBase& tangent);
  // Undefined where t has none (zero).
  TensorBase tangent(const TensorBase& t) const;
  // An alias without tangent.
  TensorBase primal(const TensorBase& t) const;

 private:
  void call_in_place(const OperatorEntry& op, Stack& stack);
  void set_tangent(const TensorBase& t, TensorBase tangent);
  void update_tangent(const TensorBase& t, TensorBase tangent);
};

}  // namespace taeda::functorch
