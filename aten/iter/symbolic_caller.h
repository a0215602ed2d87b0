// How the arguments of a boxed call become those of a rule over SymInt.
#pragma once

#include <taeda/aten/core/boxing_impl.h>
#include <taeda/aten/iter/symbolic.h>

namespace taeda {
namespace boxing {

inline SymInt to_symbol(const IValue& v) {
  return v.is<SymInt>() ? v.get<SymInt>() : SymInt(v.to_int());
}

template <>
struct Holder<SymInt> {
  SymInt value;
  explicit Holder(const IValue& v) : value(to_symbol(v)) {}
  const SymInt& get() { return value; }
};
template <>
struct Holder<std::optional<SymInt>> {
  std::optional<SymInt> value;
  explicit Holder(const IValue& v) {
    if (!v.is_none()) value = to_symbol(v);
  }
  const std::optional<SymInt>& get() { return value; }
};

inline Dims<SymInt> to_symbols(const IValue& v) {
  if (v.is<std::vector<SymInt>>()) {
    return ArrayRef<SymInt>(v.get<std::vector<SymInt>>());
  }
  Dims<SymInt> out;
  for (int64_t n : v.get<std::vector<int64_t>>()) out.push_back(n);
  return out;
}
template <>
struct Holder<ArrayRef<SymInt>> {
  Dims<SymInt> value;
  explicit Holder(const IValue& v) : value(to_symbols(v)) {}
  ArrayRef<SymInt> get() { return value; }
};
template <>
struct Holder<std::optional<ArrayRef<SymInt>>> {
  Dims<SymInt> value;
  bool given;
  explicit Holder(const IValue& v) : given(!v.is_none()) {
    if (given) value = to_symbols(v);
  }
  std::optional<ArrayRef<SymInt>> get() {
    if (!given) return std::nullopt;
    return ArrayRef<SymInt>(value);
  }
};

inline Spec<SymInt> spec_of(const IValue& v) {
  return v.is_none() ? Spec<SymInt>() : Spec<SymInt>(v.get<TensorBase>());
}
template <>
struct Holder<const Spec<SymInt>&> {
  Spec<SymInt> value;
  explicit Holder(const IValue& v) : value(spec_of(v)) {}
  const Spec<SymInt>& get() { return value; }
};
template <>
struct Holder<SpecList<SymInt>> {
  SmallVector<Spec<SymInt>, 4> value;
  explicit Holder(const IValue& v) {
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
  SpecList<SymInt> get() { return value; }
};
template <>
struct Holder<ViewGeometry<SymInt>> {
  ViewGeometry<SymInt> value;
  explicit Holder(const IValue& v) : value(v.get<TensorBase>()) {}
  ViewGeometry<SymInt>& get() { return value; }
};

}  // namespace boxing

// R is void for rules that plan outputs, whose last parameter is the plan.
template <class R, class... A>
void SymbolicCaller<R(A...)>::call(void* function,
                                   std::span<const IValue> arguments,
                                   SymbolicPlan& plan) {
  [&]<size_t... K>(std::index_sequence<K...>) {
    std::tuple<boxing::Holder<A>...> held{boxing::Holder<A>(arguments[K])...};
    if constexpr (std::is_void_v<R>) {
      auto* rule = reinterpret_cast<void (*)(A..., Plan<SymInt>&)>(function);
      rule(std::get<K>(held).get()..., plan.outputs);
    } else {
      auto* rule = reinterpret_cast<R (*)(A...)>(function);
      if constexpr (std::is_same_v<R, ViewGeometry<SymInt>>) {
        plan.views.push_back(rule(std::get<K>(held).get()...));
      } else {
        plan.views = rule(std::get<K>(held).get()...);
      }
    }
  }(std::index_sequence_for<A...>());
}

}  // namespace taeda
