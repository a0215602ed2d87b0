#include <taeda/csrc/functorch/view_relation.h>

namespace taeda::functorch {

namespace {

const TensorImpl* root_of(const TensorBase& t) {
  return t.is_view() ? t.impl()->base().get() : t.impl();
}

}  // namespace

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
  const TensorBase& viewed_value = wrapped_or_null(of)->value;
  const void* memory = innermost_value(value).storage().get();
  // Of wrappers that are functional the memory inside may be another.
  bool is_view =
      value.is_view() && (root_of(value) == root_of(viewed_value) ||
                          memory == innermost_value(of).storage().get());
  if (!is_view) return;
  ViewCreation how = value.impl()->view_creation();
  const auto& root = of.impl()->base();
  wrapper.impl()->set_base(root ? root : of.impl_ptr(),
                           grad_enabled() ? how : ViewCreation::NoGrad);
}

}  // namespace taeda::functorch
