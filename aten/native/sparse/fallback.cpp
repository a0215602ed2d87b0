// What becomes of a call for which sparse tensors have no kernel; see Note
// [Sparse kernels].
#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/factory_keys.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/empty.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/le.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/ne.h>
#include <taeda/gen/ops/resize_.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/to_dense.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace taeda::native {

namespace {

// The functional form of the record that a form belongs to. Filled when the
// first sparse tensor is made, read-only afterwards.
using Forms = std::unordered_map<const RecordInfo*, const OperatorEntry*>;
Forms& functional_forms() {
  static auto* forms = new Forms;
  return *forms;
}

void write_result(const OperatorEntry& op,
                  const Tensor& target,
                  const Tensor& result) {
  if (op.info->form == Form::InPlace && !is_sparse(target) &&
      is_sparse(result)) {
    // A dense tensor times a sparse one is sparse, but in place it is dense.
    write_result(op, target, ops::to_dense(result));
    return;
  }
  TAEDA_CHECK(is_sparse(target) == is_sparse(result),
              op.qualified_name(),
              ": a ",
              layout_word(result.layout()),
              " result cannot be written to a tensor of layout ",
              layout_word(target.layout()));
  check_castable(op.name, result.dtype(), target.dtype());
  if (is_sparse(target)) {
    set_parts(target, result);
    return;
  }
  if (target.sizes() != result.sizes()) ops::resize_(target, result.sizes());
  ops::copy_(target, result);
}

// The only tensor of a pointwise call, or null.
const Tensor* only_tensor(const OperatorEntry& op, std::span<IValue> values) {
  const Tensor* found = nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    const ArgInfo& a = op.info->values[i];
    if (!a.is_tensor() || values[i].is_none()) continue;
    if (a.has(ArgInfo::kList) || found != nullptr) return nullptr;
    found = &values[i].get<TensorBase>();
  }
  return found;
}

// The call with another tensor in the place of the sparse one.
Tensor on_values(const OperatorEntry& op,
                 std::span<IValue> values,
                 const Tensor& tensor) {
  std::vector<IValue> arguments(values.begin(), values.end());
  for (IValue& v : arguments) {
    if (v.is<TensorBase>()) v = IValue(tensor);
  }
  return call_with(op, arguments).front().get<TensorBase>();
}

bool keeps_zero(const OperatorEntry& op,
                std::span<IValue> values,
                const Tensor& like) {
  // Where there are values to look at.
  Tensor zero = ops::zeros({1}, like.dtype(), std::nullopt, Device());
  Tensor result = on_values(op, values, zero);
  return !ops::item(ops::any(ops::ne(result, Scalar(0)))).to_bool();
}

// Whether f(x) + f(y) is f(x + y), tried on whole numbers and fractions: then
// entries of one place need not be added up first.
bool keeps_sums(const OperatorEntry& op,
                std::span<IValue> values,
                const Tensor& like) {
  auto of = [&](std::array<double, 3> numbers) {
    Tensor t = ops::empty({3}, kDouble, std::nullopt, Device());
    std::ranges::copy(numbers, t.mutable_data<double>());
    ScalarType computed = is_complex(like.dtype()) ? like.dtype() : kDouble;
    return on_values(op, values, ops::to(t, computed));
  };
  Tensor apart = ops::add(of({-1.5, 0.25, 1}), of({2, 0.5, 2}), Scalar(1));
  Tensor whole = of({0.5, 0.75, 3});
  // But for rounding.
  Tensor error = ops::abs(ops::sub(apart, whole, Scalar(1)));
  Tensor bound = ops::mul(ops::abs(whole), Scalar(1e-12));
  return ops::item(ops::all(ops::le(error, bound))).to_bool();
}

class SparseFallback final : public BoxedKernel {
 public:
  void call(const OperatorEntry& op,
            DispatchKeySet keys,
            Stack& stack) override {
    if (op.info->form != Form::Functional) {
      run_functional(op, keys, stack);
    } else {
      run_on_values(op, keys, stack);
    }
  }

 private:
  static void run_functional(const OperatorEntry& op,
                             DispatchKeySet keys,
                             Stack& stack) {
    auto found = functional_forms().find(op.info->record);
    if (found == functional_forms().end()) no_kernel(op, keys);
    const OperatorEntry& functional = *found->second;
    size_t base = stack.size() - op.info->arguments;
    std::vector<IValue> arguments(
        stack.begin() + static_cast<std::ptrdiff_t>(base), stack.end());
    std::vector<Tensor> targets;
    for (size_t i = 0; i < op.written_count; ++i) {
      targets.push_back(arguments[op.written_first + i].get<TensorBase>());
    }
    if (op.info->form == Form::Out) {
      arguments.resize(op.written_first);
    } else {
      check_in_place(functional, arguments);
    }
    if (arguments.size() != functional.info->arguments) no_kernel(op, keys);
    Stack results = call_with(functional, arguments);
    for (size_t i = 0; i < targets.size(); ++i) {
      write_result(op, targets[i], results[i].get<TensorBase>());
    }
    boxing::keep_written(op, stack, base);
  }

  // In place there is nowhere for the sums of entries of one place.
  static void check_in_place(const OperatorEntry& op,
                             std::span<IValue> values) {
    if (op.info->record->family != Family::Pointwise) return;
    const Tensor* self = only_tensor(op, values);
    bool apart = self != nullptr && is_coo(*self) && !parts_of(*self).coalesced;
    TAEDA_CHECK(!apart || keeps_sums(op, values, *self),
                op.name,
                "_ requires coalesced input");
  }

  static void run_on_values(const OperatorEntry& op,
                            DispatchKeySet keys,
                            Stack& stack) {
    std::span<IValue> values = arguments_on(op, stack);
    bool pointwise =
        op.info->record->family == Family::Pointwise && op.info->results == 1;
    // Comparisons with numbers are refused, whatever holds for 0.
    bool compares =
        op.info->record->dtypes.out == OutKind::Bool && op.info->arguments > 1;
    const Tensor* self =
        pointwise && !compares ? only_tensor(op, values) : nullptr;
    if (self == nullptr || !is_sparse(*self)) no_kernel(op, keys);
    Tensor t = is_coo(*self) ? coalesced(*self) : *self;
    if (!keeps_zero(op, values, t)) no_kernel(op, keys);
    Tensor result = with_values(t, on_values(op, values, parts_of(t).values));
    boxing::drop_arguments(stack, stack.size() - op.info->arguments);
    stack.emplace_back(std::move(result));
  }
};

}  // namespace

void add_fallback(DispatchKey key) {
  for (OperatorEntry* op : Dispatcher::get().all()) {
    const OpInfo& info = *op->info;
    if (info.form == Form::Functional) {
      functional_forms().emplace(info.record, op);
    }
    // Views by strides, and what changes geometry or memory in place.
    constexpr std::string_view kSetters[] = {"set_", "resize_", "resize_as_"};
    bool by_strides =
        info.record->family == Family::View || info.has(OpTag::InPlaceView) ||
        std::ranges::find(kSetters, op->name) != std::end(kSetters);
    size_t slot = static_cast<size_t>(key);
    if (by_strides && op->boxed[slot] == nullptr) op->slots[slot] = nullptr;
  }
  Dispatcher::get().set_fallback(key, new SparseFallback);
}

void register_sparse_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    using Key = std::pair<DispatchKey, const char*>;
    for (auto [key, name] : {Key{DispatchKey::SparseCPU, "SparseCPU"},
                             Key{DispatchKey::SparseCUDA, "SparseCUDA"}}) {
      Library m("aten", name);
      add_copies(m);
      add_conversions(m);
      add_arithmetic(m);
      add_products(m);
      add_reductions(m);
      add_views(m);
      add_joins(m);
      add_resizes(m);
      add_fallback(key);
    }
  });
}

}  // namespace taeda::native

namespace taeda {

DispatchKeySet keys_of_layout(Layout layout, Device device) {
  if (!native::is_sparse_layout(layout)) return keys_of_device(device);
  native::register_sparse_kernels();
  bool cuda = device.is_cuda();
  return DispatchKeySet(cuda ? DispatchKey::SparseCUDA
                             : DispatchKey::SparseCPU);
}

}  // namespace taeda
