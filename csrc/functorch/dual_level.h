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
  // Of func.jvp, or of autograd.forward_ad, in which autograd goes on as usual.
  explicit DualLevel(bool is_transform = true);
  void call(const OperatorEntry& op, Stack& stack) override;
  const char* kind() const override { return "dual"; }
  bool is_transform() const override { return is_transform_; }

  // An alias of `primal` with a tangent. RuntimeError unless shape and dtype
  // agree.
  TensorBase make_dual(const TensorBase& primal, const TensorBase& tangent);
  // Undefined where t has none (zero).
  TensorBase tangent(const TensorBase& t) const;
  // An alias without tangent.
  TensorBase primal(const TensorBase& t) const;
  // RuntimeError unless the tangent is of t's shape.
  static void check_tangent(const TensorBase& t, const TensorBase& tangent);
  // For a result; the tangent is of its shape.
  void set_tangent(const TensorBase& t, TensorBase tangent) const;
  // After a change in place: views of the tensor have views of its tangent.
  void update_tangent(const TensorBase& t, TensorBase tangent);

 private:
  void call_in_place(const OperatorEntry& op, Stack& stack);
  TensorBase part_of_tangent(const TensorBase& base,
                             const TensorBase& view) const;
  bool is_transform_;
  uint64_t id_;
};

}  // namespace taeda::functorch
