#include <taeda/csrc/functorch/view_relation.h>

namespace taeda::functorch {

namespace {

// The argument whose memory result `index` shares; -1 if none.
int viewed_argument(const OpInfo& info, size_t index) {
  const ArgInfo& result = results_of(info)[index];
  if (result.alias == 0 || result.has(ArgInfo::kWritten)) return -1;
  for (size_t i = 0; i < info.arguments; ++i) {
    const ArgInfo& a = info.values[i];
    bool shares = (a.alias & result.alias) != 0;
    if (shares && a.is_tensor() && !a.has(ArgInfo::kList)) {
      return static_cast<int>(i);
    }
  }
  return -1;
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
