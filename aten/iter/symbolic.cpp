#include <taeda/aten/iter/symbolic.h>

#include <taeda/aten/core/observe.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/iter/reduction_mask.h>
#include <taeda/c10/symbolic/shape_env.h>

#include <algorithm>

namespace taeda {

namespace {

constexpr DispatchKeySet kSymbolic{DispatchKey::Symbolic};
constexpr DispatchKeySet kSymbolicKeys{DispatchKey::Symbolic,
                                       DispatchKey::SymbolicGrad};

using Symbols = Dims<SymInt>;

std::vector<std::string>& fallbacks() {
  thread_local std::vector<std::string> names;
  return names;
}

bool is_symbolic(const TensorBase& t) { return t.impl()->is_symbolic(); }

bool any_symbolic_tensor(std::span<IValue> values) {
  bool found = false;
  each_tensor(values, [&](TensorBase& t) { found |= is_symbolic(t); });
  return found;
}

// A plain meta tensor in the place of another, and numbers in those of symbols:
// for what a call says of dtypes, whatever the sizes are.
TensorBase stand_in(const TensorBase& t, IntArrayRef sizes) {
  TensorBase made = make_tensor("symbolic", sizes, t.dtype(), DeviceType::Meta);
  made.impl()->is_wrapped_number = t.impl()->is_wrapped_number;
  return made;
}
void stand_in_for_symbols(std::span<IValue> values) {
  for (IValue& v : values) {
    if (v.is<SymInt>()) v = hint_of(v.get<SymInt>(), 1);
    if (!v.is<std::vector<SymInt>>()) continue;
    DimVector hints =
        hints_of(ArrayRef<SymInt>(v.get<std::vector<SymInt>>()), 1);
    v = IntArrayRef(hints).vec();
  }
}

// Pointwise operators
// ----------------------------------------------------------

// Whether an operand wants dim `a` outside of dim `b`, as IterationSpace
// decides it.
struct SeenDims {
  Symbols sizes;
  SmallVector<Symbols, 4> strides;  // of each operand, 0 where it is repeated
  SmallVector<int, 8> order;        // dims, innermost first

  bool before(int a, int b) const {
    for (const Symbols& s : strides) {
      const SymInt &x = s[order[a]], &y = s[order[b]];
      if (x == 0 || y == 0) continue;
      if (x != y) return x > y;
      if (sizes[order[a]] > sizes[order[b]]) return true;
    }
    return false;
  }
  void sort() {
    int rank = static_cast<int>(order.size());
    for (int i = 1; i < rank; ++i) {
      int at = i;
      for (int j = i - 1; j >= 0; --j) {
        if (before(j, at)) {
          std::swap(order[j], order[at]);
          at = j;
        } else if (before(at, j)) {
          break;
        }
      }
    }
  }
};

Symbols repeated_strides(const TensorBase& t, const Symbols& sizes) {
  ArrayRef<SymInt> own = sym_sizes(*t.impl()), steps = sym_strides(*t.impl());
  size_t shift = sizes.size() - own.size();
  Symbols out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool repeated = d < shift || own[d - shift] == 1;
    out.push_back(repeated ? SymInt(0) : steps[d - shift]);
  }
  return out;
}

// Strides that keep the operands' common order in memory.
Symbols common_strides(const Symbols& sizes, std::span<TensorBase> operands) {
  bool row_major = std::ranges::all_of(operands, [](const TensorBase& t) {
    return t.dim() <= 1 || t.is_contiguous();
  });
  if (row_major) return strides::contiguous<SymInt>(sizes);
  SeenDims seen{sizes, {}, {}};
  for (const TensorBase& t : operands) {
    seen.strides.push_back(repeated_strides(t, sizes));
  }
  for (size_t d = sizes.size(); d-- > 0;) {
    seen.order.push_back(static_cast<int>(d));
  }
  seen.sort();
  Symbols out(sizes.size());
  SymInt running = 1;
  for (int d : seen.order) {
    out[d] = running;
    running *= sym_max(sizes[d], 1);
  }
  return out;
}

void plan_pointwise(const OperatorEntry& op,
                    std::span<const IValue> arguments,
                    SymbolicPlan& plan) {
  Stack stack(arguments.begin(), arguments.end());
  std::vector<TensorBase> operands;
  Symbols sizes;
  each_tensor(std::span(stack), [&](TensorBase& t) {
    ArrayRef<SymInt> own = sym_sizes(*t.impl());
    sizes = operands.empty() ? Symbols(own)
                             : broadcast_shapes<SymInt>(op.name, sizes, own);
    operands.push_back(t);
    t = stand_in(t, DimVector(static_cast<size_t>(t.dim()), 1));
  });
  stand_in_for_symbols(stack);
  // Where it is written into, all sizes are those of the result.
  if (op.info->form == Form::InPlace) {
    each_tensor(std::span(stack), [&](TensorBase& t) {
      t = stand_in(t, t.dim() == 0 ? DimVector() : DimVector(sizes.size(), 1));
    });
  }
  call_operator(op, stack);
  const TensorBase& seen = stack[0].get<TensorBase>();
  if (seen.dim() == 0) {  // all operands have no dims, or a loss was added up
    plan.outputs.set(0, Symbols(), seen.dtype());
    return;
  }
  plan.outputs.set(0, sizes, common_strides(sizes, operands), seen.dtype());
}

// Reductions
// ---------------------------------------------------------------------

const IValue* argument(const OperatorEntry& op,
                       std::span<const IValue> values,
                       std::string_view name) {
  for (size_t i = 0; i < op.info->arguments; ++i) {
    if (name_of(op.info->values[i], op.schema) == name) return &values[i];
  }
  return nullptr;
}

uint64_t reduced_dims(const OperatorEntry& op,
                      std::span<const IValue> arguments,
                      int64_t rank) {
  const IValue* dim = argument(op, arguments, "dim");
  if (dim == nullptr || dim->is_none()) return dim_mask(std::nullopt, rank);
  if (dim->is<int64_t>()) return dim_mask(IntArrayRef(dim->to_int()), rank);
  return reduction_mask(op.info->record->dtypes,
                        IntArrayRef(dim->get<std::vector<int64_t>>()),
                        rank);
}

void plan_reduction(const OperatorEntry& op,
                    std::span<const IValue> arguments,
                    SymbolicPlan& plan) {
  const TensorBase& self = arguments[0].get<TensorBase>();
  ArrayRef<SymInt> own = sym_sizes(*self.impl());
  uint64_t mask = reduced_dims(op, arguments, self.dim());
  const IValue* keepdim = argument(op, arguments, "keepdim");
  bool keeps = keepdim != nullptr && keepdim->to_bool();
  Symbols sizes;
  DimVector seen;
  for (size_t d = 0; d < own.size(); ++d) {
    bool gone = (mask >> d & 1) != 0;
    if (!gone || keeps) sizes.push_back(gone ? SymInt(1) : own[d]);
    // Whether something is reduced at all may be an error.
    seen.push_back(gone && own[d] == 0 ? 0 : 1);
  }
  Stack stack(arguments.begin(), arguments.end());
  stack[0] = stand_in(self, seen);
  stand_in_for_symbols(stack);
  call_operator(op, stack);
  plan.outputs.set(0, sizes, stack[0].get<TensorBase>().dtype());
}

// Numbers
// ------------------------------------------------------------------------

// The length of a range is made of its numbers; the sizes of no other operator
// are, so that a symbol among them may be any number there.
bool plan_range(const OperatorEntry& op,
                std::span<const IValue> arguments,
                SymbolicPlan& plan) {
  if (std::string_view(op.name) != "arange") return false;
  SymInt bounds[] = {0, 0, 1};
  constexpr std::string_view kNames[] = {"start", "end", "step"};
  for (size_t i = 0; i < 3; ++i) {
    const IValue* v = argument(op, arguments, kNames[i]);
    if (v == nullptr) continue;
    if (!v->is<int64_t>() && !v->is<SymInt>()) return false;
    bounds[i] = v->is<SymInt>() ? v->get<SymInt>() : SymInt(v->to_int());
  }
  auto& [start, end, step] = bounds;
  TAEDA_CHECK(step != 0, "arange: step must be nonzero");
  bool up = step > 0;
  TAEDA_CHECK(up ? start <= end : start >= end,
              "arange: upper bound and lower bound inconsistent with step "
              "sign: start ",
              start,
              ", end ",
              end,
              ", step ",
              step);
  SymInt length =
      up ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
  const IValue* dtype = argument(op, arguments, "dtype");
  bool given = dtype != nullptr && !dtype->is_none();
  plan.outputs.set(
      0,
      length,
      given ? static_cast<ScalarType>(dtype->to_int()) : ScalarType::Long);
  return true;
}

Stack with_plain_numbers(const OperatorEntry& op,
                         std::span<const IValue> arguments) {
  Stack out(arguments.begin(), arguments.end());
  for (size_t i = 0; i < out.size(); ++i) {
    bool number = op.info->values[i].type == ValueType::Scalar;
    if (number && out[i].is<SymInt>())
      out[i] = hint_of(out[i].get<SymInt>(), 1);
  }
  return out;
}

// Results
// ------------------------------------------------------------------------

void check_written(const OperatorEntry& op,
                   const PlannedOutput<SymInt>& planned,
                   const TensorBase& self) {
  ArrayRef<SymInt> own = sym_sizes(*self.impl());
  bool same = own.size() == planned.sizes.size();
  for (size_t d = 0; same && d < own.size(); ++d) {
    same = own[d] == planned.sizes[d];
  }
  TAEDA_CHECK(same,
              op.name,
              ": output with shape ",
              own,
              " doesn't match the broadcast shape ",
              planned.sizes);
  check_castable(op.name, planned.dtype, self.dtype());
}

TensorBase symbolic_view(const TensorBase& self,
                         const ViewGeometry<SymInt>& g,
                         bool one_of_many) {
  TensorBase view = make_view(self, {}, {}, 0);
  set_symbolic_geometry(view, g);
  if (one_of_many && view.impl()->view_creation() == ViewCreation::Default) {
    view.impl()->set_view_creation(ViewCreation::MultiOutput);
  }
  return view;
}

std::vector<TensorBase> make_results(const OperatorEntry& op,
                                     std::span<IValue> arguments,
                                     const SymbolicPlan& plan) {
  std::vector<TensorBase> out;
  bool many = results_of(*op.info)[0].has(ArgInfo::kList);
  for (const ViewGeometry<SymInt>& g : plan.views) {
    out.push_back(symbolic_view(arguments[0].get<TensorBase>(), g, many));
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    PlannedOutput<SymInt> o = plan.outputs[i];
    bool planned = o.dtype != ScalarType::Undefined;
    out.push_back(planned ? make_symbolic_tensor(o.sizes, o.strides, o.dtype)
                          : TensorBase());
  }
  return out;
}

void finish(const OperatorEntry& op, Stack& stack, const SymbolicPlan& plan) {
  std::span<IValue> arguments = arguments_on(op, stack);
  size_t base = stack.size() - arguments.size();
  if (op.info->form == Form::InPlace) {
    IValue self = arguments[op.written_first];
    check_written(op, plan.outputs[0], self.get<TensorBase>());
    derived::check_writable(self.get<TensorBase>());
    self.get<TensorBase>().impl()->bump_version();
    stack.resize(base);
    stack.push_back(std::move(self));
    return;
  }
  ArrayRef<ArgInfo> results = results_of(*op.info);
  std::vector<TensorBase> made = make_results(op, arguments, plan);
  stack.resize(base);
  if (results[0].has(ArgInfo::kList)) {
    stack.emplace_back(std::move(made));
    return;
  }
  made.resize(results.size());
  for (TensorBase& t : made) stack.emplace_back(std::move(t));
}

// A symbol in the place of a tensor becomes a tensor without memory: no result
// depends on its value here.
void numbers_as_tensors(const OperatorEntry& op, std::span<IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!op.info->values[i].is_tensor() || !arguments[i].is<SymInt>()) continue;
    TensorBase number =
        make_tensor("symbolic", {}, ScalarType::Long, DeviceType::Meta);
    number.impl()->is_wrapped_number = true;
    arguments[i] = std::move(number);
  }
}

void fix(const TensorBase& t) {
  if (!is_symbolic(t)) return;
  TensorImpl& impl = *t.impl();
  DimVector sizes(impl.sizes()), strides(impl.strides());
  impl.set_sizes_and_strides(sizes, strides, impl.storage_offset());
}

// Functions that stand for all devices are made of other operators, which see
// the symbols; of others every symbol is fixed.
void compute_fixed(const OperatorEntry& op, Stack& stack) {
  std::span<IValue> arguments = arguments_on(op, stack);
  fix_symbols(arguments);
  void* function = observe::kernel_at(op, DispatchKey::Meta);
  bool anywhere = function == observe::kernel_at(op, DispatchKey::PrivateUse1);
  if (op.info->form == Form::Functional && function != nullptr && anywhere) {
    op.from_stack(op, function, stack);
    return;
  }
  fallbacks().push_back(op.qualified_name());
  each_tensor(arguments, [](TensorBase& t) { fix(t); });
  call_operator(op, stack);
}

struct SymbolicKernel final : BoxedKernel {
  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    numbers_as_tensors(op, arguments_on(op, stack));
    if (run_symbolic_composite(op, stack)) return;
    if (op.info->record->composite || is_transparent(op)) {
      run_composite(op, stack);
      return;
    }
    try {
      std::optional<SymbolicPlan> plan =
          plan_symbolic(op, arguments_on(op, stack));
      plan ? finish(op, stack, *plan) : compute_fixed(op, stack);
    } catch (const DataDependentError& error) {
      throw DataDependentError(
          str_cat(op.qualified_name(), ": ", error.message()));
    }
  }
};

}  // namespace

std::optional<SymbolicPlan> plan_symbolic(const OperatorEntry& op,
                                          std::span<const IValue> arguments) {
  const RecordInfo& record = *op.info->record;
  if (op.info->form == Form::Out) return std::nullopt;
  std::optional<SymbolicPlan> plan(op.name);
  bool symbols = has_symbols(arguments);
  if (symbols && plan_range(op, arguments, *plan)) return plan;
  if (record.rule != nullptr) {
    Stack numbers;
    if (symbols) {
      numbers = with_plain_numbers(op, arguments);
      arguments = numbers;
    }
    record.rule->call(record.rule->function, arguments, *plan);
  } else if (record.family == Family::Pointwise) {
    plan_pointwise(op, arguments, *plan);
  } else if (record.family == Family::Reduction && record.axes == nullptr) {
    plan_reduction(op, arguments, *plan);
  } else {
    plan.reset();
  }
  return plan;
}

void set_symbolic_geometry(const TensorBase& t, const ViewGeometry<SymInt>& g) {
  TensorImpl& impl = *t.impl();
  if (all_plain(g.sizes) && all_plain(g.strides) && !g.offset.is_symbolic()) {
    impl.set_keys(impl.keys() - kSymbolicKeys);
    impl.set_sizes_and_strides(
        as_plain(g.sizes), as_plain(g.strides), g.offset.plain());
    return;
  }
  impl.set_symbolic(
      make_intrusive<SymbolicGeometry>(g.sizes, g.strides, g.offset));
  impl.add_key(DispatchKey::SymbolicGrad);
  if (t.is_meta()) impl.add_key(DispatchKey::Symbolic);
}

TensorBase make_symbolic_tensor(ArrayRef<SymInt> sizes,
                                ArrayRef<SymInt> strides,
                                ScalarType dtype) {
  TensorBase t = make_tensor("symbolic", {0}, dtype, DeviceType::Meta);
  ViewGeometry<SymInt> g(t);
  g.sizes = sizes;
  g.strides = strides.size() == sizes.size()
                  ? Symbols(strides)
                  : strides::contiguous<SymInt>(sizes);
  set_symbolic_geometry(t, g);
  return t;
}

std::vector<std::string> take_symbolic_fallbacks() {
  return std::exchange(fallbacks(), {});
}

bool run_symbolic_composite(const OperatorEntry& op, Stack& stack) {
  std::span<IValue> arguments = arguments_on(op, stack);
  if (!has_symbols(arguments) && !any_symbolic_tensor(arguments)) return false;
  SymbolicComposite composite = find_symbolic_composite(op);
  if (composite == nullptr) return false;
  Stack results;
  composite(arguments, results);
  stack.resize(stack.size() - arguments.size());
  for (IValue& v : results) stack.push_back(std::move(v));
  return true;
}

void call_with_symbols(const OperatorEntry& op, Stack& stack) {
  std::span<IValue> arguments = arguments_on(op, stack);
  DispatchKeySet keys;
  for (const IValue& v : arguments) keys = keys | keys_in(v);
  if (keys.empty()) {
    Device device = default_device();
    for (const IValue& v : arguments) {
      if (v.is<Device>()) device = v.get<Device>();
    }
    keys = backend_key(device.type);
  }
  keys = keys | DispatchKeySet(DispatchKey::SymbolicGrad);
  if (keys.has(DispatchKey::Meta)) keys = keys | kSymbolic;
  DispatchKey key = op.select(keys);
  void* kernel = observe::kernel_at(op, key);
  if (kernel == nullptr) {
    boxed_kernel(op, keys).call(op, keys, stack);
  } else if (!run_symbolic_composite(op, stack)) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      bool number = op.info->values[i].is_tensor() && arguments[i].is<SymInt>();
      if (number) arguments[i] = wrap_number(Scalar(arguments[i].to_int()));
    }
    fix_symbols(arguments);
    op.from_stack(op, kernel, stack);
  }
}

void register_symbolic_kernel(Dispatcher& dispatcher) {
  static SymbolicKernel kernel;
  dispatcher.set_fallback(DispatchKey::Symbolic, &kernel);
}

}  // namespace taeda
