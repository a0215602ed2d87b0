#include <taeda/aten/iter/symbolic_caller.h>

namespace taeda::boxing {

SymInt to_symbol(const IValue& v) {
  return v.is<SymInt>() ? v.get<SymInt>() : SymInt(v.to_int());
}

Dims<SymInt> to_symbols(const IValue& v) {
  if (v.is<std::vector<SymInt>>()) {
    return ArrayRef<SymInt>(v.get<std::vector<SymInt>>());
  }
  Dims<SymInt> out;
  for (int64_t n : v.get<std::vector<int64_t>>()) out.push_back(n);
  return out;
}

Holder<SymInt>::Holder(const IValue& v) : value(to_symbol(v)) {}
Holder<SymInt>::~Holder() = default;

Holder<std::optional<SymInt>>::Holder(const IValue& v) {
  if (!v.is_none()) value = to_symbol(v);
}
Holder<std::optional<SymInt>>::~Holder() = default;

Holder<ArrayRef<SymInt>>::Holder(const IValue& v) : value(to_symbols(v)) {}
Holder<ArrayRef<SymInt>>::~Holder() = default;

Holder<std::optional<ArrayRef<SymInt>>>::Holder(const IValue& v)
    : given(!v.is_none()) {
  if (given) value = to_symbols(v);
}
Holder<std::optional<ArrayRef<SymInt>>>::~Holder() = default;

Holder<const Spec<SymInt>&>::Holder(const IValue& v) {
  if (!v.is_none()) value = Spec<SymInt>(v.get<TensorBase>());
}
Holder<const Spec<SymInt>&>::~Holder() = default;

Holder<SpecList<SymInt>>::Holder(const IValue& v) {
  if (v.is<std::vector<OptionalTensor>>()) {
    for (const OptionalTensor& t : v.get<std::vector<OptionalTensor>>()) {
      value.push_back(t ? Spec<SymInt>(*t) : Spec<SymInt>());
    }
  } else if (!v.is_none()) {
    for (const TensorBase& t : v.get<std::vector<TensorBase>>()) {
      value.push_back(Spec<SymInt>(t));
    }
  }
}
Holder<SpecList<SymInt>>::~Holder() = default;

Holder<ViewGeometry<SymInt>>::Holder(const IValue& v)
    : value(v.get<TensorBase>()) {}
Holder<ViewGeometry<SymInt>>::~Holder() = default;

}  // namespace taeda::boxing
