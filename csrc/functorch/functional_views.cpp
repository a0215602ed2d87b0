#include <taeda/csrc/functorch/functional_views.h>

#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/gen/ops/_conj.h>
#include <taeda/gen/ops/_neg_view.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/resolve_conj.h>
#include <taeda/gen/ops/resolve_neg.h>
#include <taeda/gen/ops/view.h>
#include <taeda/gen/ops/view_as_complex.h>
#include <taeda/gen/ops/view_as_real.h>

#include <algorithm>
#include <array>

namespace taeda::functorch {

namespace {

const OperatorEntry& operator_named(std::string_view name,
                                    std::string_view overload = "") {
  const OperatorEntry* op = Dispatcher::get().find(name, overload);
  TAEDA_INTERNAL_ASSERT(op != nullptr);
  return *op;
}

TensorBase only_result(std::string_view name, std::span<const IValue> args) {
  return call_with(operator_named(name), args)[0].get<TensorBase>();
}

TensorBase reshaped(const TensorBase& t, const IValue& sizes) {
  return only_result("reshape", std::array<IValue, 2>{t, sizes});
}

SymInt symbol_of(const IValue& v) {
  return v.is<SymInt>() ? v.get<SymInt>() : SymInt(v.to_int());
}

bool is_strided(const ViewStep& step) {
  return std::string_view(step.op->name) == "as_strided";
}

std::vector<IValue> arguments_for(const ViewStep& step,
                                  const TensorBase& base) {
  std::vector<IValue> args = step.arguments;
  args[step.place] = base;
  if (is_strided(step)) {
    args[3] = boxed_integer(symbol_of(args[3]) + sym_offset(*base.impl()));
  }
  return args;
}

// Inverses
// ----------------------------------------------------------------------

using Inverse = TensorBase (*)(const ViewStep& step,
                               const TensorBase& base,
                               const TensorBase& changed);

TensorBase itself(const ViewStep&,
                  const TensorBase&,
                  const TensorBase& changed) {
  return changed;
}

// The elements in the same order.
TensorBase in_shape_of_base(const ViewStep&,
                            const TensorBase& base,
                            const TensorBase& changed) {
  return reshaped(changed, boxed_integers(sym_sizes(*base.impl())));
}

// The same call again.
TensorBase again(const ViewStep& step,
                 const TensorBase&,
                 const TensorBase& changed) {
  return replay(step, changed);
}

// select_scatter(base, changed, ...) for select(base, ...).
TensorBase scattered(const ViewStep& step,
                     const TensorBase& base,
                     const TensorBase& changed) {
  std::vector<IValue> args = arguments_for(step, base);
  args.insert(args.begin() + 1, changed);
  return only_result(str_cat(step.op->name, "_scatter"), args);
}

TensorBase permuted_back(const ViewStep& step,
                         const TensorBase& base,
                         const TensorBase& changed) {
  const auto& dims = step.arguments[1].get<std::vector<int64_t>>();
  std::vector<int64_t> back(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    back[static_cast<size_t>(wrap_dim(dims[i], base.dim()))] =
        static_cast<int64_t>(i);
  }
  return ops::permute(changed, back);
}

TensorBase as_dtype_of_base(const ViewStep&,
                            const TensorBase& base,
                            const TensorBase& changed) {
  return ops::view(ops::contiguous(changed), base.dtype());
}

TensorBase as_complex(const ViewStep&,
                      const TensorBase&,
                      const TensorBase& changed) {
  return ops::view_as_complex(ops::contiguous(changed));
}

TensorBase as_real(const ViewStep&,
                   const TensorBase&,
                   const TensorBase& changed) {
  return ops::view_as_real(ops::resolve_conj(changed));
}

TensorBase conjugated(const ViewStep&,
                      const TensorBase&,
                      const TensorBase& changed) {
  return ops::resolve_conj(ops::_conj(changed));
}

TensorBase negated(const ViewStep&,
                   const TensorBase&,
                   const TensorBase& changed) {
  return ops::resolve_neg(ops::_neg_view(changed));
}

struct Row {
  std::string_view name;  // of all overloads, unless one is named
  Inverse inverse;
};
constexpr Row kRows[] = {
    {"alias", itself},
    {"detach", itself},
    {"lift_fresh", itself},
    {"view.dtype", as_dtype_of_base},
    {"view", in_shape_of_base},
    {"_reshape_alias", in_shape_of_base},
    {"squeeze", in_shape_of_base},
    {"unsqueeze", in_shape_of_base},
    {"t", again},
    {"transpose", again},
    {"swapdims", again},
    {"swapaxes", again},
    {"permute", permuted_back},
    {"select", scattered},
    {"slice", scattered},
    {"diagonal", scattered},
    {"as_strided", scattered},
    {"view_as_real", as_complex},
    {"view_as_complex", as_real},
    {"_conj", conjugated},
    {"_neg_view", negated},
};

Inverse inverse_of(const OperatorEntry& op) {
  std::string full = str_cat(op.name, ".", op.overload);
  for (const Row& row : kRows) {
    if (row.name == full || row.name == op.name) return row.inverse;
  }
  return nullptr;
}

// Whether the call moves elements about and leaves them as they are.
// as_strided goes by the layout, which numbers have in common with a contiguous
// tensor alone.
bool moves_elements(const ViewStep& step, const TensorBase& base) {
  constexpr Inverse kMoving[] = {
      nullptr, itself, in_shape_of_base, again, permuted_back, scattered};
  if (is_strided(step) && !base.is_contiguous()) return false;
  return std::ranges::find(kMoving, inverse_of(*step.op)) != std::end(kMoving);
}

// Shows elements more than once.
bool is_repeating(const ViewStep& step) {
  if (!is_strided(step)) return false;
  const IValue& strides = step.arguments[2];
  return strides.is<std::vector<int64_t>>() &&
         std::ranges::count(strides.get<std::vector<int64_t>>(), 0) > 0;
}

// The numbers of the base's elements, seen through the view.
TensorBase numbers_seen(std::span<const ViewStep> steps,
                        const TensorBase& base) {
  GradModeGuard off(false);
  std::array<IValue, 5> args{boxed_integer(sym_numel(*base.impl())),
                             static_cast<int64_t>(kLong),
                             IValue(),
                             base.device(),
                             IValue()};
  TensorBase numbers = reshaped(only_result("arange", args),
                                boxed_integers(sym_sizes(*base.impl())));
  for (const ViewStep& step : steps) {
    TAEDA_CHECK_AS(NotImplemented,
                   moves_elements(step, base),
                   "functionalize: a change in place of a view by ",
                   step.op->qualified_name(),
                   " of a view by ",
                   steps[0].op->qualified_name(),
                   " cannot be put back into its base of shape ",
                   sym_sizes(*base.impl()));
    numbers = replay(step, numbers);
  }
  return numbers;
}

TensorBase put_back_by_number(std::span<const ViewStep> steps,
                              const TensorBase& base,
                              const TensorBase& changed) {
  IValue row = std::vector<int64_t>{-1};
  std::array<IValue, 4> args{reshaped(base, row),
                             int64_t{0},
                             reshaped(numbers_seen(steps, base), row),
                             reshaped(changed, row)};
  Stack written = call_with(operator_named("scatter", "src"), args);
  return reshaped(written[0].get<TensorBase>(),
                  boxed_integers(sym_sizes(*base.impl())));
}

}  // namespace

IValue boxed_integers(ArrayRef<SymInt> list) {
  if (all_plain(list)) return as_plain(list).vec();
  return std::vector<SymInt>(list.begin(), list.end());
}

IValue boxed_integer(const SymInt& v) {
  if (v.is_symbolic()) return v;
  return v.plain();
}

ViewStep strided_step(ArrayRef<SymInt> sizes,
                      ArrayRef<SymInt> strides,
                      const SymInt& offset) {
  ViewStep step{&operator_named("as_strided"), {}};
  step.arguments = {TensorBase(),
                    boxed_integers(sizes),
                    boxed_integers(strides),
                    boxed_integer(offset)};
  return step;
}

ViewStep step_for_element(ViewStep step, size_t i) {
  std::string_view name = step.op->name;
  auto at = static_cast<int64_t>(i);
  std::vector<IValue>& args = step.arguments;
  SymInt start = 0, end = 0;
  if (name == "unbind") {
    step.op = &operator_named("select", "int");
    args = {TensorBase(), args[1], at};
    return step;
  }
  if (name == "split") {
    start = symbol_of(args[1]) * SymInt(at);
    end = start + symbol_of(args[1]);
  } else if (name == "split_with_sizes") {
    std::vector<SymInt> sizes;
    if (args[1].is<std::vector<SymInt>>()) {
      sizes = args[1].get<std::vector<SymInt>>();
    } else {
      const auto& plain = args[1].get<std::vector<int64_t>>();
      sizes.assign(plain.begin(), plain.end());
    }
    for (size_t k = 0; k < i; ++k) start += sizes[k];
    end = start + sizes[i];
  } else {
    step.element = i;
    return step;
  }
  step.op = &operator_named("slice", "Tensor");
  args = {TensorBase(),
          args[2],
          boxed_integer(start),
          boxed_integer(end),
          int64_t{1}};
  return step;
}

TensorBase replay(const ViewStep& step, const TensorBase& base) {
  GradModeGuard mode(step.recorded);
  Stack results = call_with(*step.op, arguments_for(step, base));
  TensorBase view =
      results[0].is<TensorBase>()
          ? results[0].get<TensorBase>()
          : results[0].get<std::vector<TensorBase>>().at(step.element);
  return step.copied ? ops::clone(view) : view;
}

TensorBase replay(std::span<const ViewStep> steps, TensorBase base) {
  for (const ViewStep& step : steps) base = replay(step, base);
  return base;
}

TensorBase put_back(std::span<const ViewStep> steps,
                    const TensorBase& base,
                    const TensorBase& changed) {
  if (steps.empty()) return changed;
  Inverse inverse = inverse_of(*steps[0].op);
  if (inverse == nullptr || is_repeating(steps[0])) {
    return put_back_by_number(steps, base, changed);
  }
  std::span<const ViewStep> rest = steps.subspan(1);
  if (rest.empty()) return inverse(steps[0], base, changed);
  TensorBase view = replay(steps[0], base);
  return inverse(steps[0], base, put_back(rest, view, changed));
}

}  // namespace taeda::functorch
