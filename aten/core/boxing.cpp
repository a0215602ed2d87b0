#include <taeda/aten/core/boxing_impl.h>

namespace taeda::boxing {

void push(Stack& s, const TensorBase& t) { s.emplace_back(t); }
void push(Stack& s, const OptionalTensor& t) {
  t && t->defined() ? push(s, *t) : push_none(s);
}
void push(Stack& s, TensorBaseList l) { s.emplace_back(l.vec()); }
void push(Stack& s, const std::vector<TensorBase>& l) { s.emplace_back(l); }
void push(Stack& s, ArrayRef<OptionalTensor> l) { s.emplace_back(l.vec()); }
void push(Stack& s, const Scalar& v) { s.emplace_back(v); }
void push(Stack& s, int64_t v) { s.emplace_back(v); }
void push(Stack& s, double v) { s.emplace_back(v); }
void push(Stack& s, bool v) { s.emplace_back(v); }
void push(Stack& s, std::string_view v) { s.emplace_back(std::string(v)); }
void push(Stack& s, ScalarType v) { push(s, static_cast<int64_t>(v)); }
void push(Stack& s, Layout v) { push(s, static_cast<int64_t>(v)); }
void push(Stack& s, MemoryFormat v) { push(s, static_cast<int64_t>(v)); }
void push(Stack& s, Device v) { s.emplace_back(v); }
void push(Stack& s, const Generator& v) { s.emplace_back(v); }
void push(Stack& s, ArrayRef<int64_t> l) { s.emplace_back(l.vec()); }
void push(Stack& s, ArrayRef<double> l) { s.emplace_back(l.vec()); }
void push(Stack& s, ArrayRef<Scalar> l) { s.emplace_back(l.vec()); }
void push(Stack& s, ArrayRef<bool> l) {
  s.emplace_back(std::vector<bool>(l.begin(), l.end()));
}
void push_none(Stack& s) { s.emplace_back(); }

#define TAEDA_READ(type, expression) \
  type Read<type>::get(const IValue& v) { return expression; }
TAEDA_READ(int64_t, v.to_int())
TAEDA_READ(double, v.to_double())
TAEDA_READ(bool, v.to_bool())
TAEDA_READ(Scalar, v.to_scalar())
TAEDA_READ(std::string_view, v.get<std::string>())
TAEDA_READ(ScalarType, static_cast<ScalarType>(v.to_int()))
TAEDA_READ(Layout, static_cast<Layout>(v.to_int()))
TAEDA_READ(MemoryFormat, static_cast<MemoryFormat>(v.to_int()))
TAEDA_READ(Device, v.get<Device>())
TAEDA_READ(Generator, v.get<Generator>())
TAEDA_READ(TensorBase, tensor_in(v))
TAEDA_READ(ArrayRef<int64_t>, v.get<std::vector<int64_t>>())
TAEDA_READ(ArrayRef<double>, v.get<std::vector<double>>())
TAEDA_READ(ArrayRef<Scalar>, v.get<std::vector<Scalar>>())
TAEDA_READ(TensorBaseList, v.get<std::vector<TensorBase>>())
TAEDA_READ(std::vector<TensorBase>, v.get<std::vector<TensorBase>>())
#undef TAEDA_READ

const TensorBase& tensor_in(const IValue& v) {
  static const TensorBase undefined;
  return v.is_none() ? undefined : v.get<TensorBase>();
}

Holder<ArrayRef<bool>>::Holder(const IValue& v) {
  for (bool b : v.get<std::vector<bool>>()) value.push_back(b);
}
Holder<ArrayRef<bool>>::~Holder() = default;

Holder<ArrayRef<OptionalTensor>>::Holder(const IValue& v) {
  if (v.is<std::vector<OptionalTensor>>()) {
    value = v.get<std::vector<OptionalTensor>>();
    return;
  }
  for (const TensorBase& t : v.get<std::vector<TensorBase>>()) {
    value.emplace_back(t);
  }
}
Holder<ArrayRef<OptionalTensor>>::~Holder() = default;

void drop_arguments(Stack& stack, size_t base) { stack.resize(base); }

void keep_written(const OperatorEntry& op, Stack& stack, size_t base) {
  size_t end = stack.size();
  for (size_t i = 0; i < op.written_count; ++i) {
    stack.push_back(stack[base + op.written_first + i]);
  }
  stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(base),
              stack.begin() + static_cast<std::ptrdiff_t>(end));
}

CallStack::CallStack(size_t count) { values.reserve(count); }
CallStack::~CallStack() = default;
void CallStack::run(const OperatorEntry& op, DispatchKeySet keys) {
  boxed_kernel(op, keys).call(op, keys, values);
}

}  // namespace taeda::boxing
