// Normalisations with a batch of weights: normalised without, then scaled.
#include <taeda/csrc/functorch/batch_helpers.h>

#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reshape.h>

#include <algorithm>

namespace taeda::functorch {

namespace {

TensorBase tensor_or_none(const BatchCall& call, size_t i) {
  return is_given(call, i) ? batched(call, i) : TensorBase();
}

// The call with the arguments at these places left out.
std::optional<Stack> without(const BatchCall& call,
                             std::span<const size_t> places) {
  std::vector<IValue> args(call.args.begin(), call.args.end());
  for (size_t i : places) args[i] = IValue();
  if (call.is_batched(0)) {
    BatchCall plain{call.level, call.op, args};
    return kernel_batch(plain);
  }
  Stack stack(args.begin(), args.end());
  call_operator(call.op, stack);
  for (IValue& v : stack) {
    each_tensor(v, [&](TensorBase& t) { t = call.level.unwrap(t, 0); });
  }
  return stack;
}

// The factor, and what is added behind it, at `places`; each is shaped by `as`.
template <class F>
std::optional<Stack> scaled_after(BatchCall& call,
                                  std::initializer_list<size_t> places,
                                  F&& as) {
  bool any =
      std::ranges::any_of(places, [&](size_t i) { return call.is_batched(i); });
  if (!any) return kernel_batch(call);
  std::optional<Stack> found = without(call, places);
  if (!found) return found;
  TensorBase& out = (*found)[0].get<TensorBase>();
  bool first = true;
  for (size_t i : places) {
    TensorBase t = tensor_or_none(call, i);
    if (t.defined()) out = first ? ops::mul(out, as(t)) : ops::add(out, as(t));
    first = false;
  }
  return found;
}

// Weights of the last dims.
std::optional<Stack> of_last_dims(BatchCall& call,
                                  std::initializer_list<size_t> places) {
  int64_t rank = rank_of(call, 0);
  return scaled_after(
      call, places, [rank](const TensorBase& t) { return padded(t, rank); });
}

std::optional<Stack> layer_norm(BatchCall& call) {
  return of_last_dims(call, {2, 3});
}
std::optional<Stack> rms_norm(BatchCall& call) {
  return of_last_dims(call, {2});
}

// Weights of the channels.
std::optional<Stack> group_norm(BatchCall& call) {
  int64_t rank = rank_of(call, 0);
  return scaled_after(call, {1, 2}, [rank](const TensorBase& t) {
    std::vector<int64_t> sizes(static_cast<size_t>(rank) + 1, 1);
    sizes[0] = t.size(0);
    sizes[2] = t.size(1);
    return ops::reshape(t, sizes);
  });
}

constexpr NamedRule kNormRules[] = {
    {"native_layer_norm", layer_norm},
    {"_fused_rms_norm", rms_norm},
    {"native_group_norm", group_norm},
};

}  // namespace

ArrayRef<NamedRule> norm_rules() { return kNormRules; }

}  // namespace taeda::functorch
