// How the arguments of a boxed call become those of a rule over SymInt.
#pragma once

#include <taeda/aten/core/boxing_impl.h>
#include <taeda/aten/iter/symbolic.h>

namespace taeda {
namespace boxing {

SymInt to_symbol(const IValue& v);
Dims<SymInt> to_symbols(const IValue& v);

template <>
struct Holder<SymInt> {
  SymInt value;
  explicit Holder(const IValue& v);
  ~Holder();
  const SymInt& get() { return value; }
};
template <>
struct Holder<std::optional<SymInt>> {
  std::optional<SymInt> value;
  explicit Holder(const IValue& v);
  ~Holder();
  const std::optional<SymInt>& get() { return value; }
};
template <>
struct Holder<ArrayRef<SymInt>> {
  Dims<SymInt> value;
  explicit Holder(const IValue& v);
  ~Holder();
  ArrayRef<SymInt> get() { return value; }
};
template <>
struct Holder<std::optional<ArrayRef<SymInt>>> {
  Dims<SymInt> value;
  bool given;
  explicit Holder(const IValue& v);
  ~Holder();
  std::optional<ArrayRef<SymInt>> get() {
    if (!given) return std::nullopt;
    return ArrayRef<SymInt>(value);
  }
};

template <>
struct Holder<const Spec<SymInt>&> {
  Spec<SymInt> value;
  explicit Holder(const IValue& v);
  ~Holder();
  const Spec<SymInt>& get() { return value; }
};
template <>
struct Holder<SpecList<SymInt>> {
  SmallVector<Spec<SymInt>, 4> value;
  explicit Holder(const IValue& v);
  ~Holder();
  SpecList<SymInt> get() { return value; }
};
template <>
struct Holder<ViewGeometry<SymInt>> {
  ViewGeometry<SymInt> value;
  explicit Holder(const IValue& v);
  ~Holder();
  ViewGeometry<SymInt>& get() { return value; }
};

}  // namespace boxing

// R is void for rules that plan outputs, whose last parameter is the plan.
template <class R, class... A>
void SymbolicCaller<R(A...)>::call(void* function,
                                   std::span<const IValue> arguments,
                                   SymbolicPlan& plan) {
  [&]<size_t... K>(std::index_sequence<K...>) {
    // The holders are temporaries, which live until the rule has run.
    if constexpr (std::is_void_v<R>) {
      auto* rule = reinterpret_cast<void (*)(A..., Plan<SymInt>&)>(function);
      rule(boxing::Holder<A>(arguments[K]).get()..., plan.outputs);
    } else {
      auto* rule = reinterpret_cast<R (*)(A...)>(function);
      if constexpr (std::is_same_v<R, ViewGeometry<SymInt>>) {
        plan.views.push_back(rule(boxing::Holder<A>(arguments[K]).get()...));
      } else {
        plan.views = rule(boxing::Holder<A>(arguments[K]).get()...);
      }
    }
  }(std::index_sequence_for<A...>());
}

}  // namespace taeda
