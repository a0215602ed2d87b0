#include <taeda/csrc/functorch/view_relation.h>

namespace taeda::functorch {

void relate_view(const OperatorEntry& op,
                 std::span<const IValue> given,
                 size_t index,
                 const TensorBase& wrapper) {
  int viewed = viewed_argument(*op.info, index);
  if (viewed < 0) return;
  const TensorBase& of = given[static_cast<size_t>(viewed)].get<TensorBase>();
  if (level_of(of) != level_of(wrapper)) return;
  // detach gives no view, and a rule may have made a copy.
  const TensorBase& value = wrapped_or_null(wrapper)->value;
  const void* memory = innermost_value(value).storage().get();
  bool is_view =
      value.is_view() && memory == innermost_value(of).storage().get();
  if (!is_view) return;
  ViewCreation how = value.impl()->view_creation();
  const auto& root = of.impl()->base();
  wrapper.impl()->set_base(root ? root : of.impl_ptr(),
                           grad_enabled() ? how : ViewCreation::NoGrad);
}

}  // namespace taeda::functorch
