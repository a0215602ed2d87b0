#include <taeda/csrc/profiler/arguments.h>

#include <taeda/aten/core/level.h>

namespace taeda::profiler {

namespace {

void add(Argument& to, const TensorBase& t) {
  to.dtypes.push_back(t.dtype());
  bool strided = t.layout() == Layout::Strided;
  to.sizes.push_back(t.impl()->hinted_sizes().vec());
  to.strides.push_back(strided && !t.impl()->is_symbolic()
                           ? t.strides().vec()
                           : std::vector<int64_t>());
}

Argument describe(IValue& v) {
  Argument out;
  bool list =
      v.is<std::vector<TensorBase>>() || v.is<std::vector<OptionalTensor>>();
  if (v.is<TensorBase>() || list) {
    out.type = list ? Argument::Tensors : Argument::Tensor;
    each_tensor(v, [&](const TensorBase& t) { add(out, t); });
  } else if (!v.is_none()) {
    out.type = Argument::Value;
    out.value = std::move(v);
  }
  return out;
}

}  // namespace

std::vector<Argument> describe_values(const observe::Values& values) {
  Stack stack;
  stack.reserve(values.count);
  values.push_to(stack);
  std::vector<Argument> out;
  for (IValue& v : stack) out.push_back(describe(v));
  return out;
}

std::vector<Argument> describe_tensors(const autograd::Tensors& tensors) {
  std::vector<Argument> out;
  for (const TensorBase& t : tensors) {
    Argument& argument = out.emplace_back();
    if (!t.defined()) continue;
    argument.type = Argument::Tensor;
    add(argument, t);
  }
  return out;
}

}  // namespace taeda::profiler
