// Views as functions of their base: made anew, and put back into it.
#pragma once

#include <taeda/aten/core/level.h>

namespace taeda::functorch {

// Note [Views as steps]
// A view is remembered as the calls that make it of its base. Made anew, it has
// the base's present values. Put back, its own new values become those of a new
// base: step by step by the inverse of each call (`select_scatter` of
// `select`), and where a call has none, by the numbers of the base's elements,
// sent through the same calls.
struct ViewStep {
  const OperatorEntry* op;
  // Undefined in the place of what is viewed. The offset of as_strided counts
  // from that of the tensor it is applied to, which is another one each time.
  std::vector<IValue> arguments;
  size_t place = 0;
  size_t element = 0;     // of a list of results
  bool recorded = false;  // grad mode when the view was made
  bool copied = false;    // a copy of the view in its place
};
using ViewSteps = std::vector<ViewStep>;

// The step for element `i` of a call that gives a list of views: one view where
// there is a call for it.
ViewStep step_for_element(ViewStep step, size_t i);

// as_strided of a tensor, `offset` elements behind the tensor's own offset.
ViewStep strided_step(ArrayRef<SymInt> sizes,
                      ArrayRef<SymInt> strides,
                      const SymInt& offset);

TAEDA_API TensorBase replay(const ViewStep& step, const TensorBase& base);
TAEDA_API TensorBase replay(std::span<const ViewStep> steps, TensorBase base);

// `base` with `changed` where the view is. NotImplementedError naming the
// operator where nothing tells.
TensorBase put_back(std::span<const ViewStep> steps,
                    const TensorBase& base,
                    const TensorBase& changed);

// Integers for a boxed call: symbols only where there are some.
IValue boxed_integers(ArrayRef<SymInt> list);
IValue boxed_integer(const SymInt& v);

}  // namespace taeda::functorch
