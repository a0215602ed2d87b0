// See Note [Calls on the device].
#include <taeda/aten/core/boxing_impl.h>
#include <taeda/aten/core/level.h>
#include <taeda/aten/core/observe.h>
#include <taeda/aten/core/stand_in.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cuda/formulas.h>
#include <taeda/aten/native/cuda/host.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/quick.h>

#include <algorithm>
#include <unordered_map>

namespace taeda::cuda {

namespace {

constexpr Device kMeta{DeviceType::Meta};

// Of a functional form: whatever computes it here. Filled when the library is
// loaded, read-only afterwards.
struct Kernels {
  const Written* written = nullptr;
  const FormulaText* formula = nullptr;
  QuickKernel quick = nullptr;  // goes before them where it applies
  void* function = nullptr;
  // Whether these, and not what the record means, compute it in any case.
  bool is_whole() const { return written != nullptr || formula != nullptr; }
};
using Table = std::unordered_map<const OperatorEntry*, Kernels>;
Table& kernels() {
  static auto& all = *new Table;
  return all;
}
// The functional form of the record that a form belongs to; likewise.
using Forms = std::unordered_map<const RecordInfo*, const OperatorEntry*>;
Forms& functional_forms() {
  static auto& all = *new Forms;
  return all;
}

bool is_cuda(Device d) { return d.type == DeviceType::CUDA; }

// Where a call computes; tensors of the CPU without axes are moved there,
// others are an error.
Device gather_on_device(const OperatorEntry& op, std::span<IValue> values) {
  std::optional<Device> found;
  TensorBase first;
  for (IValue& v : values) {
    each_tensor(v, [&](TensorBase& t) {
      if (!found && is_cuda(t.device())) {
        found = t.device();
        first = t;
      }
    });
  }
  for (size_t i = 0; i < values.size() && !found; ++i) {
    if (op.info->values[i].type != ValueType::Device) continue;
    found = values[i].is_none() ? default_device() : values[i].get<Device>();
  }
  if (!found) found = default_device();
  for (size_t i = 0; i < values.size(); ++i) {
    // Lists of optional tensors are indices, which may lie on the CPU.
    bool moves = op.info->values[i].has(ArgInfo::kOptionalElement);
    bool written = op.info->values[i].has(ArgInfo::kWritten);
    bool in_list = op.info->values[i].has(ArgInfo::kList) && !moves;
    each_tensor(values[i], [&](TensorBase& t) {
      // Numbers in lists, such as counts of steps, stay where they are.
      if (in_list && t.device().is_cpu() && t.dim() == 0) return;
      if (t.device() == *found) {
        // Kernels read memory as it is.
        if (!written && (t.is_conj() || t.is_neg())) t = contiguous(t);
        return;
      }
      if (t.device().is_cpu() && (t.dim() == 0 || moves)) {
        TensorBase there = make_tensor(op.name, t.sizes(), t.dtype(), *found);
        copy_into(there, t);
        t = there;
        return;
      }
      check_same_device(op.name, first, t);
    });
  }
  return *found;
}

// What takes the place of a call's tensors. A tensor that is given twice is one
// here too: rules that refuse to read what is written see that.
class StandIns {
 public:
  TensorBase of(const TensorBase& t) {
    for (const auto& [real, made] : known_) {
      if (real.is_same(t)) return made;
    }
    TensorBase made =
        make_tensor_strided("meta", t.sizes(), t.strides(), t.dtype(), kMeta);
    made.impl()->is_wrapped_number = t.impl()->is_wrapped_number;
    known_.emplace_back(t, made);
    return made;
  }

 private:
  SmallVector<std::pair<TensorBase, TensorBase>, 6> known_;
};

// The call's own rule, by its meta kernel: errors, warnings, and how the
// results lie. Written tensors among the results are stand-ins too. Of a list
// of results nothing is planned.
std::vector<TensorBase> planned(const OperatorEntry& op,
                                void* meta,
                                std::span<const IValue> values,
                                Device device) {
  Stack stack(values.begin(), values.end());
  StandIns stand_ins;
  StandInScope scope(device);
  for (size_t i = 0; i < stack.size(); ++i) {
    each_tensor(stack[i], [&](TensorBase& t) { t = stand_ins.of(t); });
    if (op.info->values[i].type == ValueType::Device) stack[i] = IValue(kMeta);
  }
  op.from_stack(op, meta, stack);
  std::vector<TensorBase> results;
  for (IValue& v : stack) {
    // A list is made by the definition alone.
    if (!v.is<TensorBase>()) return {};
    results.push_back(v.get<TensorBase>());
  }
  return results;
}

TensorBase allocated(const OperatorEntry& op,
                     const TensorBase& plan,
                     Device device) {
  if (!plan.defined()) return plan;
  return make_tensor_strided(
      op.name, plan.sizes(), plan.strides(), plan.dtype(), device);
}

// The tensor that is written, as its stand-in has become.
TensorBase resized(const OperatorEntry& op,
                   std::span<const IValue> values,
                   size_t i,
                   const TensorBase& plan) {
  const TensorBase& t = values[op.written_first + i].get<TensorBase>();
  if (t.sizes() != plan.sizes() || t.strides() != plan.strides()) {
    resize_tensor_strided(t, plan.sizes(), plan.strides());
  }
  return t;
}

bool is_small(ScalarType t) { return t == kHalf || t == kBFloat16; }

// Definitions round what every operator in them gives: half and bfloat16 go
// through them as float.
void widen(Stack& stack, size_t base) {
  for (size_t i = base; i < stack.size(); ++i) {
    each_tensor(stack[i], [](TensorBase& t) {
      if (!is_small(t.dtype())) return;
      TensorBase wide =
          make_tensor_strided("to", t.sizes(), t.strides(), kFloat, t.device());
      copy_into(wide, t);
      t = wide;
    });
  }
}

// The result as it is planned to lie.
void settle(const OperatorEntry& op, const TensorBase& plan, IValue& result) {
  if (!result.is<TensorBase>() || !result.get<TensorBase>().defined()) return;
  const TensorBase& t = result.get<TensorBase>();
  if (!plan.defined() ||
      (t.dtype() == plan.dtype() && t.strides() == plan.strides())) {
    return;
  }
  TensorBase made = allocated(op, plan, t.device());
  copy_into(made, t);
  result = made;
}

// What the record means, or a function of this library, in place of a kernel;
// the call is checked as if there were one.
bool run_definition(const OperatorEntry& op, Stack& stack) {
  auto found = kernels().find(&op);
  void* function = found == kernels().end() ? nullptr : found->second.function;
  bool widens = function == nullptr;
  bool functional = op.info->form == Form::Functional;
  if (function == nullptr && functional) function = op.info->record->means;
  if (function == nullptr) return false;
  size_t base = stack.size() - op.info->arguments;
  std::span<IValue> values = arguments_on(op, stack);
  Device device = gather_on_device(op, values);
  std::vector<TensorBase> plans;
  void* meta = observe::kernel_at(op, DispatchKey::Meta);
  // How large a result is that depends on data, no rule knows.
  if (op.info->has(OpTag::DynamicOutputShape)) meta = nullptr;
  if (meta != nullptr) plans = planned(op, meta, values, device);
  auto is_empty = [](const TensorBase& t) {
    return !t.defined() || t.numel() == 0;
  };
  if (op.written_count == 0 && !plans.empty() &&
      std::all_of(plans.begin(), plans.end(), is_empty)) {
    stack.resize(base);
    for (const TensorBase& plan : plans) {
      stack.emplace_back(allocated(op, plan, device));
    }
    return true;
  }
  if (widens) widen(stack, base);
  op.from_stack(op, function, stack);
  if (op.written_count > 0) return true;
  for (size_t i = 0; i < plans.size() && base + i < stack.size(); ++i) {
    settle(op, plans[i], stack[base + i]);
  }
  return true;
}

// Computes a functional form into what the call leaves on the stack; false
// where nothing here does.
bool run_kernel(const OperatorEntry& op, Stack& stack) {
  auto found = kernels().find(&op);
  void* meta = observe::kernel_at(op, DispatchKey::Meta);
  if (found == kernels().end() || meta == nullptr) return false;
  const Kernels& kernel = found->second;
  if (kernel.function != nullptr) return false;
  size_t base = stack.size() - op.info->arguments;
  std::span<IValue> values = arguments_on(op, stack);
  Device device = gather_on_device(op, values);
  std::vector<TensorBase> results, plans = planned(op, meta, values, device);
  TAEDA_CHECK_AS(NotImplemented,
                 !plans.empty(),
                 op.qualified_name(),
                 ": lists of results are not there on CUDA");
  for (const TensorBase& plan : plans) {
    bool given = results.size() < op.written_count;
    results.push_back(given ? resized(op, values, results.size(), plan)
                            : allocated(op, plan, device));
  }
  if (kernel.quick != nullptr && kernel.quick(values.data(), results)) {
    // Done.
  } else if (!kernel.is_whole()) {
    return false;
  } else if (kernel.written != nullptr) {
    run_written(op, *kernel.written, values.data(), results);
  } else if (!run_formula(op, *kernel.formula, values.data(), results)) {
    return false;
  }
  stack.resize(base);
  for (TensorBase& t : results) stack.emplace_back(std::move(t));
  return true;
}

// Arguments of the functional form, options of new tensors being those of the
// first that is written.
std::vector<IValue> functional_arguments(const OperatorEntry& op,
                                         const OperatorEntry& functional,
                                         std::span<const IValue> values) {
  const TensorBase& like = values[op.written_first].get<TensorBase>();
  std::vector<IValue> found;
  for (const ArgInfo& a : arguments_of(*functional.info)) {
    std::string_view wanted = name_of(a, functional.schema);
    size_t at = 0;
    while (at < values.size() &&
           name_of(op.info->values[at], op.schema) != wanted) {
      ++at;
    }
    if (at < values.size()) {
      found.push_back(values[at]);
    } else if (a.type == ValueType::ScalarType) {
      found.emplace_back(static_cast<int64_t>(like.dtype()));
    } else if (a.type == ValueType::Device) {
      found.emplace_back(like.device());
    } else {
      found.emplace_back();
    }
  }
  return found;
}

void write_result(const OperatorEntry& op,
                  const TensorBase& result,
                  const TensorBase& target) {
  check_castable(op.name, result.dtype(), target.dtype());
  if (op.info->form != Form::InPlace) resize_output(target, result.sizes());
  copy_into(target, result);
}

// What a meta kernel does not see: where tensors lie. Without one, nothing may
// be read that is written.
void check_memory(const OperatorEntry& op,
                  std::span<IValue> values,
                  const TensorBase& target,
                  bool planned) {
  check_no_internal_overlap(op.name, target);
  for (size_t i = 0; i < values.size(); ++i) {
    if (op.info->values[i].has(ArgInfo::kWritten)) continue;
    each_tensor(values[i], [&](TensorBase& t) {
      if (planned || op.info->form == Form::InPlace) {
        check_no_partial_overlap(op.name, target, t);
      } else {
        check_no_overlap(op.name, target, t);
      }
    });
  }
}

void run_writing(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) {
  auto found = functional_forms().find(op.info->record);
  if (found == functional_forms().end()) no_kernel(op, keys);
  size_t base = stack.size() - op.info->arguments;
  std::span<IValue> values = arguments_on(op, stack);
  std::vector<TensorBase> targets;
  for (size_t i = 0; i < op.written_count; ++i) {
    const IValue& v = values[op.written_first + i];
    if (!v.is<TensorBase>()) no_kernel(op, keys);
    targets.push_back(v.get<TensorBase>());
  }
  void* meta = observe::kernel_at(op, DispatchKey::Meta);
  std::vector<TensorBase> plans;
  if (meta != nullptr) {
    for (const TensorBase& t : targets) check_memory(op, values, t, true);
    Device device = gather_on_device(op, values);
    plans = planned(op, meta, values, device);
    for (size_t i = 0; i < plans.size(); ++i) resized(op, values, i, plans[i]);
  }
  // What has grown may lie over what is read now.
  for (const TensorBase& t : targets) {
    check_memory(op, values, t, meta != nullptr);
  }
  Stack results = call_with(*found->second,
                            functional_arguments(op, *found->second, values));
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto& result = results[i].get<TensorBase>();
    if (i >= plans.size()) {
      write_result(op, result, targets[i]);
      continue;
    }
    // The meta kernel has checked and warned.
    copy_into(targets[i], result);
  }
  boxing::keep_written(op, stack, base);
}

// Checks the call by its meta kernel, as if there were one of the device.
bool run_on_host(const OperatorEntry& op, Stack& stack) {
  if (!is_of_host(op)) return false;
  std::span<IValue> values = arguments_on(op, stack);
  Device device = gather_on_device(op, values);
  if (void* meta = observe::kernel_at(op, DispatchKey::Meta)) {
    planned(op, meta, values, device);
  }
  compute_on_host(op, stack, device);
  return true;
}

class DeviceFallback final : public BoxedKernel {
 public:
  void call(const OperatorEntry& op,
            DispatchKeySet keys,
            Stack& stack) override {
    if (run_kernel(op, stack) || run_definition(op, stack)) return;
    if (run_on_host(op, stack)) return;
    if (op.info->form != Form::Functional) return run_writing(op, keys, stack);
    if (!make_on_host(op, stack)) no_kernel(op, keys);
  }
};

}  // namespace

namespace {

struct Quick {
  const char* op;
  QuickKernel kernel;
};
constexpr Quick kQuick[] = {
    {"index_select", index_select_quick},
    {"embedding", embedding_quick},
    {"gather", gather_quick},
    {"convolution", convolution_by_cudnn},
    {"convolution_backward", convolution_backward_by_cudnn},
    {"_scaled_dot_product_efficient_attention", attention},
    {"_scaled_dot_product_efficient_attention_backward", attention_backward},
    {"_flash_attention_forward", attention_of_sequences},
    {"_flash_attention_backward", attention_of_sequences_backward},
};

QuickKernel quick_kernel(const OperatorEntry& op) {
  if (*op.overload != '\0') return nullptr;
  for (const Quick& quick : kQuick) {
    if (std::string_view(op.name) == quick.op) return quick.kernel;
  }
  return nullptr;
}

}  // namespace

void register_fallback() {
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    bool functional = op->info->form == Form::Functional;
    if (functional) functional_forms().emplace(op->info->record, op);
    Kernels found{written_kernel(*op),
                  functional ? formula_of(*op) : nullptr,
                  quick_kernel(*op)};
    if (found.is_whole() || found.quick != nullptr) {
      kernels().emplace(op, found);
    }
  }
  for (Definitions list :
       {product_definitions(),       indexing_definitions(),
        sorting_definitions(),       choosing_definitions(),
        layer_definitions(),         transform_definitions(),
        fourier_definitions(),       system_definitions(),
        sampling_definitions(),      sequence_definitions(),
        factor_definitions(),        spectrum_definitions(),
        recurrent_definitions(),     resize_definitions(),
        softmax_definitions(),       row_norm_definitions(),
        cross_entropy_definitions(), channel_norm_definitions(),
        optimizer_definitions(),     list_definitions()}) {
    for (const Definition& d : list) {
      std::string_view name = d.op, overload;
      if (size_t dot = name.find('.'); dot != name.npos) {
        overload = name.substr(dot + 1);
        name = name.substr(0, dot);
      }
      OperatorEntry* op = Dispatcher::get().find(name, overload);
      TAEDA_INTERNAL_ASSERT(op != nullptr, "no operator ", d.op);
      kernels()[op].function = d.function;
      // It takes the place of a function for all devices, where there is one.
      op->slots[static_cast<int>(DispatchKey::CUDA)] = nullptr;
    }
  }
  static auto& fallback = *new DeviceFallback;
  Dispatcher::get().set_fallback(DispatchKey::CUDA, &fallback);
}

}  // namespace taeda::cuda
