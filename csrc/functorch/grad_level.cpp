#include <taeda/csrc/functorch/grad_level.h>

#include <taeda/csrc/functorch/view_relation.h>

namespace taeda::functorch {

namespace {

constexpr DispatchKeySet kIntercept{DispatchKey::Intercept};

bool is_written(const OperatorEntry& op, size_t argument) {
  return op.info->values[argument].has(ArgInfo::kWritten);
}

void refuse_captured(const OperatorEntry& op,
                     std::span<IValue> args,
                     const Level* level) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!is_written(op, i)) continue;
    each_tensor(args[i], [&](TensorBase& t) {
      TAEDA_CHECK(
          level_of(t) == level,
          "During a grad (vjp, jvp, grad, etc) transform, the function "
          "provided attempted to call in-place operation (",
          op.qualified_name(),
          ") that would mutate a captured Tensor. This is not supported; "
          "please rewrite the function being transformed to explicitly "
          "accept the mutated Tensor(s) as inputs.");
    });
  }
}

}  // namespace

TensorBase GradLevel::wrap(const TensorBase& t) {
  // What the level itself made is a wrapper already.
  TensorBase value = unwrap(t);
  return make_wrapper(
      LevelPtr::share(this), value, value.sizes(), value.strides());
}

TensorBase GradLevel::unwrap(const TensorBase& t) const {
  const Wrapped* w = wrapped_or_null(t);
  return w != nullptr && w->level.get() == this ? w->value : t;
}

void GradLevel::call(const OperatorEntry& op, Stack& stack) {
  std::span<IValue> args = arguments_on(op, stack);
  bool any = false;
  each_tensor(args, [&](TensorBase& t) { any = any || level_of(t) == this; });
  if (!any) {
    call_below_autograd(op, stack);
    return;
  }
  refuse_captured(op, args, this);
  each_tensor(args, [&](TensorBase& t) {
    if (level_of(t) != this) t = wrap(t);
  });
  ExcludeKeysGuard past(kIntercept);
  call_operator(op, stack);
}

void GradLevel::call_below_autograd(const OperatorEntry& op, Stack& stack) {
  size_t base = stack.size() - op.info->arguments;
  std::vector<IValue> given(stack.begin() + static_cast<std::ptrdiff_t>(base),
                            stack.end());
  each_tensor(arguments_on(op, stack), [&](TensorBase& t) { t = unwrap(t); });
  {
    BelowLevel below(*this);
    set_grad_enabled(outer_grad_mode_);
    call_operator(op, stack);
  }
  for (size_t i = 0; base + i < stack.size(); ++i) {
    IValue& result = stack[base + i];
    if (i < op.written_count) {
      // The wrappers that were given; their geometry may have changed.
      TensorBase inner = result.get<TensorBase>();
      result = given[op.written_first + i];
      const TensorBase& outer = result.get<TensorBase>();
      if (level_of(outer) == this) {
        set_wrapped(outer, inner, inner.sizes(), inner.strides());
      }
      continue;
    }
    each_tensor(result, [&](TensorBase& t) {
      t = wrap(t);
      relate_view(op, given, i, t);
    });
  }
}

}  // namespace taeda::functorch
