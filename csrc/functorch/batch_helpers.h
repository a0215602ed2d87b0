// What batching rules are written with.
#pragma once

#include <taeda/csrc/functorch/batch_level.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::functorch {

// The rule of one operator, by its name with overload.
struct NamedRule {
  std::string_view name;
  BatchRule rule;
};
ArrayRef<NamedRule> product_rules();
ArrayRef<NamedRule> indexing_rules();
ArrayRef<NamedRule> norm_rules();
ArrayRef<NamedRule> sequence_rules();

// The value inside, whose batch is dim 0; as it is where it has none.
inline TensorBase inside(const BatchCall& call, size_t i) {
  return call.level.inside(call.args[i].get<TensorBase>());
}
// The value with a batch, which it is given where it has none.
inline TensorBase batched(const BatchCall& call, size_t i) {
  return call.level.unwrap(call.args[i].get<TensorBase>(), 0);
}
inline bool is_given(const BatchCall& call, size_t i) {
  return call.args[i].is<TensorBase>() &&
         call.args[i].get<TensorBase>().defined();
}
// The rank that the mapped function sees.
inline int64_t rank_of(const BatchCall& call, size_t i) {
  return call.args[i].get<TensorBase>().dim();
}
// Dims of size 1 behind the batch, until there are `rank` without it.
inline TensorBase padded(TensorBase value, int64_t rank) {
  while (value.dim() - 1 < rank) value = ops::unsqueeze(value, 1);
  return value;
}
inline std::vector<int64_t> ints(const IValue& v) {
  return v.get<std::vector<int64_t>>();
}

}  // namespace taeda::functorch
