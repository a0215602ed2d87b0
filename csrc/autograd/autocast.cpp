#include <taeda/csrc/autograd/autocast.h>

#include <taeda/aten/core/level.h>
#include <taeda/aten/core/observe.h>
#include <taeda/csrc/autograd/variable.h>

#include <taeda/gen/ops/to.h>

#include <algorithm>
#include <unordered_map>

namespace taeda::autocast {

namespace {

constexpr DispatchKeySet kAutocast{DispatchKey::Autocast};

// The devices that autocast can be set for, and what it computes in there if
// nothing else is said. Records have policies for the first two; a device of a
// program has those of CUDA.
constexpr std::pair<DeviceType, ScalarType> kDefaults[] = {
    {DeviceType::CPU, kBFloat16},
    {DeviceType::CUDA, kHalf},
    {DeviceType::XPU, kHalf},
    {DeviceType::MPS, kHalf},
    {DeviceType::HPU, kBFloat16},
    {DeviceType::MTIA, kHalf},
    {DeviceType::MAIA, kBFloat16},
    {DeviceType::IPU, kHalf},
    {DeviceType::XLA, kBFloat16},
    {DeviceType::PrivateUse1, kHalf},
};

constexpr uint32_t bit(DeviceType type) {
  return uint32_t{1} << static_cast<int>(type);
}
constexpr uint32_t kWithPolicies =
    bit(DeviceType::CPU) | bit(DeviceType::CUDA) | bit(DeviceType::PrivateUse1);

// The cast of a leaf, as long as the leaf lives and is not written to.
struct Kept {
  WeakPtr<TensorImpl> leaf;
  uint32_t version;
  TensorBase cast;
};

struct State {
  Settings settings;
  int nesting = 0;
  std::unordered_map<const TensorImpl*, Kept> cache;

  State() {
    for (auto [type, dtype] : kDefaults) {
      settings.dtypes[static_cast<int>(type)] = dtype;
    }
  }
};
State& state() {
  thread_local State state;
  return state;
}

void refresh_included() {
  if ((state().settings.enabled & kWithPolicies) != 0) {
    local_state.included |= kAutocast.bits();
  } else {
    local_state.included &= ~kAutocast.bits();
  }
}

DeviceType known(DeviceType type) {
  TAEDA_CHECK(is_available(type),
              "unknown device type for autocast: '",
              device_type_name(type),
              "'");
  return type;
}

ScalarType& dtype_in(Settings& settings, DeviceType type) {
  return settings.dtypes[static_cast<int>(known(type))];
}

// Casts the arguments of one call, on the device that the call runs on.
class Caster {
 public:
  Caster(const OperatorEntry& op, DeviceType device)
      : op_(op),
        device_(device),
        lower_(state().settings.dtypes[static_cast<int>(device)]) {}

  void apply(Autocast policy, std::span<IValue> arguments) const {
    switch (policy) {
      case Autocast::Keep:
        return;
      case Autocast::Lower:
        return cast_all(arguments, lower_);
      case Autocast::Float32:
        return cast_all(arguments, kFloat);
      case Autocast::Float32Result:
        return ask_for_float32(arguments);
      case Autocast::Promote:
        return cast_all(arguments, widest(arguments));
      case Autocast::Refuse:
        refuse();
    }
  }

 private:
  bool is_cast(const TensorBase& t) const {
    return is_floating(t.dtype()) && t.dtype() != kDouble &&
           t.device().type == device_;
  }

  void cast_all(std::span<IValue> arguments, ScalarType dtype) const {
    each_tensor(arguments, [&](TensorBase& t) {
      if (is_cast(t) && t.dtype() != dtype) t = cast(t, dtype);
    });
  }

  // float32 where an argument has it, else the smaller dtype.
  ScalarType widest(std::span<IValue> arguments) const {
    ScalarType found = lower_;
    each_tensor(arguments, [&](TensorBase& t) {
      if (!is_cast(t) || found == kFloat) return;
      TAEDA_CHECK(t.dtype() == kFloat || t.dtype() == lower_,
                  op_.qualified_name(),
                  ": Unexpected floating ScalarType in autocast: expected ",
                  dtype_name(lower_),
                  " or float32, got ",
                  dtype_name(t.dtype()));
      found = t.dtype();
    });
    return found;
  }

  void ask_for_float32(std::span<IValue> arguments) const {
    const IValue& first = arguments[0];
    if (!first.is<TensorBase>() || !is_cast(first.get<TensorBase>())) return;
    size_t i = 0;
    for (const ArgInfo& a : arguments_of(*op_.info)) {
      IValue& v = arguments[i++];
      if (a.type == ValueType::ScalarType && v.is_none()) {
        v = static_cast<int64_t>(kFloat);
      }
    }
  }

  [[noreturn]] void refuse() const {
    throw_error(ErrorKind::Runtime,
                str_cat(op_.name,
                        " is unsafe to autocast: its gradient leaves the range "
                        "of small dtypes; take ",
                        op_.name,
                        "_with_logits, or disable autocast around it"));
  }

  TensorBase cast(const TensorBase& t, ScalarType dtype) const {
    const State& s = state();
    // A level's values are other objects at each call.
    bool keep = s.settings.cache_enabled && s.nesting > 0 && dtype == lower_ &&
                t.dtype() == kFloat && t.requires_grad() && !t.is_view() &&
                autograd::is_leaf(t) && levels().empty();
    return keep ? kept_cast(t, dtype) : ops::to(t, dtype);
  }

  static TensorBase kept_cast(const TensorBase& leaf, ScalarType dtype) {
    auto& cache = state().cache;
    auto found = cache.find(leaf.impl());
    if (found != cache.end()) {
      const Kept& kept = found->second;
      // A cast made without grad mode does not lead back to the leaf, and an
      // address may have been used again.
      bool usable = kept.leaf.lock() &&
                    kept.version == leaf.impl()->version() &&
                    kept.cast.dtype() == dtype &&
                    (kept.cast.requires_grad() || !grad_enabled());
      if (usable) return kept.cast;
      cache.erase(found);
    }
    TensorBase cast = ops::to(leaf, dtype);
    cache.emplace(
        leaf.impl(),
        Kept{WeakPtr<TensorImpl>(leaf.impl()), leaf.impl()->version(), cast});
    return cast;
  }

  const OperatorEntry& op_;
  DeviceType device_;
  ScalarType lower_;
};

// The device whose autocast a call is subject to: the CPU's comes last. Meta
// tensors have an autocast only where restore() switched it on, while they
// stand for tensors of the CPU.
std::optional<DeviceType> device_of(std::span<IValue> arguments) {
  uint32_t found = 0;
  each_tensor(arguments, [&](TensorBase& t) { found |= bit(t.device().type); });
  found &= state().settings.enabled;
  for (DeviceType type : {DeviceType::CUDA, DeviceType::PrivateUse1}) {
    if ((found & bit(type)) != 0) return type;
  }
  if ((found & bit(DeviceType::CPU)) != 0) return DeviceType::CPU;
  if ((found & bit(DeviceType::Meta)) != 0) return DeviceType::Meta;
  return std::nullopt;
}

// In-place and out= overloads, derived or declared.
bool writes(const OpInfo& info) {
  return std::ranges::any_of(arguments_of(info), [](const ArgInfo& a) {
    return a.has(ArgInfo::kWritten);
  });
}

Autocast policy_of(const OpInfo& info, DeviceType device) {
  if (writes(info)) return Autocast::Keep;
  const RecordInfo& record = *info.record;
  bool other = device == DeviceType::CUDA || device == DeviceType::PrivateUse1;
  return other ? record.autocast_cuda : record.autocast_cpu;
}

bool has_policy(const RecordInfo& record) {
  return record.autocast_cpu != Autocast::Keep ||
         record.autocast_cuda != Autocast::Keep;
}

// Calls what would run if the operator did not answer the key.
void pass_on(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) {
  uint64_t left = (keys.bits() | local_state.included) & local_state.mask &
                  op.present & ~kAutocast.bits();
  DispatchKey key = DispatchKeySet::raw(left).highest();
  int slot = static_cast<int>(key);
  if (void* kernel = observe::kernel_at(op, key)) {
    op.from_stack(op, kernel, stack);
    return;
  }
  BoxedKernel* kernel = op.boxed[slot];
  if (kernel == nullptr) kernel = Dispatcher::get().fallback(key);
  if (kernel == nullptr) no_kernel(op, keys);
  kernel->call(op, keys, stack);
}

// A call as autocast sees it.
struct Seen {
  std::optional<DeviceType> device;
  Autocast policy = Autocast::Keep;

  Seen(const OperatorEntry& op, std::span<IValue> arguments)
      : device(device_of(arguments)) {
    if (device) policy = policy_of(*op.info, *device);
  }
  // Composites are seen through what they call, but for writing forms of what
  // has a policy: they keep the dtypes that they are given.
  bool passes(const OperatorEntry& op) const {
    return policy == Autocast::Keep && is_transparent(op) &&
           !(writes(*op.info) && has_policy(*op.info->record));
  }
};

struct AutocastKernel final : BoxedKernel {
  void call(const OperatorEntry& op,
            DispatchKeySet keys,
            Stack& stack) override {
    std::span<IValue> arguments = arguments_on(op, stack);
    Seen seen(op, arguments);
    if (seen.passes(op)) {
      pass_on(op, keys, stack);
      return;
    }
    ExcludeKeysGuard past(kAutocast);
    if (seen.device) Caster(op, *seen.device).apply(seen.policy, arguments);
    call_operator(op, stack);
  }
};

}  // namespace

bool is_available(DeviceType type) {
  for (auto [known, dtype] : kDefaults) {
    if (known == type) return true;
  }
  return false;
}

bool is_enabled(DeviceType type) {
  return (state().settings.enabled & bit(known(type))) != 0;
}
void set_enabled(DeviceType type, bool on) {
  uint32_t& enabled = state().settings.enabled;
  enabled = on ? enabled | bit(known(type)) : enabled & ~bit(known(type));
  refresh_included();
}
ScalarType dtype_of(DeviceType type) {
  return dtype_in(state().settings, type);
}
void set_dtype(DeviceType type, ScalarType dtype) {
  dtype_in(state().settings, type) = dtype;
}

bool comes_first(const OperatorEntry& op, Stack& stack) {
  uint64_t answered = local_state.included & local_state.mask & op.present;
  if ((answered & kAutocast.bits()) == 0) return false;
  return !Seen(op, arguments_on(op, stack)).passes(op);
}

bool cache_enabled() { return state().settings.cache_enabled; }
void set_cache_enabled(bool on) { state().settings.cache_enabled = on; }
void clear_cache() { state().cache.clear(); }
int increment_nesting() { return ++state().nesting; }
int decrement_nesting() { return --state().nesting; }

const Settings& settings() { return state().settings; }
void restore(const Settings& settings) {
  state().settings = settings;
  refresh_included();
}

}  // namespace taeda::autocast

namespace taeda {

void register_autocast_kernel(Dispatcher& dispatcher) {
  static autocast::AutocastKernel kernel;
  dispatcher.set_fallback(DispatchKey::Autocast, &kernel);
}

}  // namespace taeda
