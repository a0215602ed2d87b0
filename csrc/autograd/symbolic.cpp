// Recording calls on tensors whose sizes are symbols.
#include <taeda/csrc/autograd/symbolic_wrapper.h>

#include <taeda/aten/core/observe.h>
#include <taeda/aten/iter/symbolic.h>

namespace taeda::autograd {

namespace {

// Note [Recording symbolic calls]
// Nodes keep sizes, and integers that the schema calls SymInt, as SymInt, and
// formulas compute with those. So the wrapper that records a call is the usual
// one where the call's own integers are plain. Where one is a symbol it cannot
// be: its parameters are int64_t. The key SymbolicGrad, which lies above
// Autograd and is in the keys of symbolic tensors, then calls the record's
// second wrapper, whose parameters are SymInt.
constexpr DispatchKeySet kSymbolicGrad{DispatchKey::SymbolicGrad};
constexpr DispatchKeySet kBothGrads{DispatchKey::SymbolicGrad,
                                    DispatchKey::Autograd};

}  // namespace

void add_symbolic_wrappers(SymbolicWrappers& table);  // generated

namespace {

const SymbolicWrappers& wrappers_over_symbols() {
  static const SymbolicWrappers table = [] {
    SymbolicWrappers made;
    add_symbolic_wrappers(made);
    return made;
  }();
  return table;
}

bool wants_grad(std::span<IValue> arguments) {
  if (!grad_enabled()) return false;
  bool wanted = false;
  each_tensor(arguments, [&](TensorBase& t) { wanted |= t.requires_grad(); });
  return wanted;
}

// A number in the place of a tensor, as one.
void spell_out_numbers(const OperatorEntry& op, std::span<IValue> arguments) {
  const TensorBase* like = nullptr;
  each_tensor(arguments, [&](TensorBase& t) { like = like ? like : &t; });
  for (size_t i = 0; i < arguments.size() && like != nullptr; ++i) {
    if (!op.info->values[i].is_tensor() || !arguments[i].is<SymInt>()) continue;
    arguments[i] = native::number_as_tensor(*like, arguments[i].get<SymInt>());
  }
}

// div.Scalar of a symbol is div.Tensor of the number as a tensor, whose
// derivative keeps it; null where there is no such overload.
const OperatorEntry* with_tensor(const OperatorEntry& op,
                                 std::span<IValue> arguments) {
  bool by_number = arguments.size() >= 2 && arguments[1].is<SymInt>() &&
                   arguments[0].is<TensorBase>() &&
                   std::string_view(op.overload) == "Scalar";
  if (!by_number) return nullptr;
  const OperatorEntry* other = Dispatcher::get().find(op.name, "Tensor");
  bool same = other != nullptr && other->info->arguments == arguments.size() &&
              other->info->values[1].is_tensor();
  return same ? other : nullptr;
}

struct SymbolicGradKernel final : BoxedKernel {
  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    if (is_transparent(op)) {
      run_composite(op, stack);
      return;
    }
    std::span<IValue> arguments = arguments_on(op, stack);
    spell_out_numbers(op, arguments);
    void* wrapper = observe::kernel_at(op, DispatchKey::Autograd);
    if (wrapper == nullptr || !wants_grad(arguments)) {
      ExcludeKeysGuard below(kBothGrads);
      call_operator(op, stack);
      return;
    }
    if (const OperatorEntry* other = with_tensor(op, arguments)) {
      call_operator(*other, stack);
      return;
    }
    ExcludeKeysGuard below(kSymbolicGrad);
    if (has_symbols(arguments)) {
      if (auto* found = wrappers_over_symbols().find(op)) {
        found->call(found->function, stack);
        return;
      }
      fix_symbols(arguments);
    }
    op.from_stack(op, wrapper, stack);
  }
};

}  // namespace
}  // namespace taeda::autograd

namespace taeda {

void register_symbolic_grad_kernel(Dispatcher& dispatcher);
void register_symbolic_grad_kernel(Dispatcher& dispatcher) {
  static autograd::SymbolicGradKernel kernel;
  dispatcher.set_fallback(DispatchKey::SymbolicGrad, &kernel);
}

}  // namespace taeda
