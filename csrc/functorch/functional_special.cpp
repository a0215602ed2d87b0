// Operators that change what a tensor is, not only what it holds.
#include <taeda/csrc/functorch/functional_level.h>

#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/gen/ops/_native_batch_norm_legit_functional.h>
#include <taeda/gen/ops/new_empty.h>
#include <taeda/gen/ops/slice_scatter.h>

namespace taeda::functorch {

namespace {

using Symbols = Dims<SymInt>;

Symbols symbols_of(const IValue& v) {
  if (v.is<std::vector<SymInt>>()) {
    return Symbols(ArrayRef<SymInt>(v.get<std::vector<SymInt>>()));
  }
  Symbols out;
  for (int64_t n : v.get<std::vector<int64_t>>()) out.push_back(SymInt(n));
  return out;
}

SymInt product(ArrayRef<SymInt> sizes) {
  SymInt n = 1;
  for (const SymInt& s : sizes) n *= s;
  return n;
}

std::optional<MemoryFormat> format_of(const IValue& v) {
  if (v.is_none()) return std::nullopt;
  return static_cast<MemoryFormat>(v.to_int());
}

Symbols strides_for(ArrayRef<SymInt> sizes,
                    std::optional<MemoryFormat> format) {
  bool row_major = !format || *format == MemoryFormat::Contiguous ||
                   *format == MemoryFormat::Preserve || !all_plain(sizes);
  if (row_major) return strides::contiguous<SymInt>(sizes);
  Symbols out;
  for (int64_t s : format_strides(as_plain(sizes), *format)) {
    out.push_back(SymInt(s));
  }
  return out;
}

// A larger memory that begins with the elements of `old`.
TensorBase grown(const TensorBase& old, ArrayRef<SymInt> sizes) {
  std::vector<int64_t> count{product(sizes).guard()};
  TensorBase flat = ops::new_empty(old, count);
  if (old.numel() == 0) return flat;
  SymInt number = SymInt(old.numel());
  TensorBase row = replay(
      strided_step(ArrayRef<SymInt>(number), ArrayRef<SymInt>(SymInt(1)), 0),
      old);
  return ops::slice_scatter(flat, row, 0, 0, old.numel(), 1);
}

void set(FunctionalLevel& level,
         const OperatorEntry& op,
         std::span<const IValue> given) {
  const TensorBase& self = given[0].get<TensorBase>();
  std::string_view overload = op.overload;
  if (overload.empty()) {
    std::vector<int64_t> none{0};
    level.become(self, level.wrap(ops::new_empty(level.unwrap(self), none)));
    return;
  }
  TensorBase source = given[1].get<TensorBase>();
  if (!level.holds(source)) source = level.wrap(source);
  level.become(self, source);
  if (overload != "source_Tensor_storage_offset") return;
  Symbols sizes = symbols_of(given[3]), strides = symbols_of(given[4]);
  if (strides.size() != sizes.size()) {
    strides = strides::contiguous<SymInt>(sizes);
  }
  std::vector<IValue> args{
      self, boxed_integers(sizes), boxed_integers(strides), given[2]};
  level.change_view(self, *Dispatcher::get().find("as_strided", ""), args);
}

// Its statistics are written, which the schema does not say.
bool batch_norm(FunctionalLevel& level,
                const OperatorEntry& op,
                std::span<const IValue> given,
                std::span<const IValue> values,
                Stack& results) {
  bool has = given[3].is<TensorBase>() && given[4].is<TensorBase>() &&
             level.holds(given[3].get<TensorBase>()) &&
             level.holds(given[4].get<TensorBase>());
  if (!has || !given[5].to_bool()) return false;
  const OperatorEntry* form =
      Dispatcher::get().find("_native_batch_norm_legit_functional", "");
  results = call_with(*form, values);
  level.write(op, given[3].get<TensorBase>(), results[3].get<TensorBase>());
  level.write(op, given[4].get<TensorBase>(), results[4].get<TensorBase>());
  results.resize(3);
  for (IValue& v : results) {
    each_tensor(v, [&](TensorBase& t) { t = level.wrap(t); });
  }
  return true;
}

}  // namespace

void FunctionalLevel::resize(const TensorBase& wrapper,
                             ArrayRef<SymInt> sizes,
                             std::optional<MemoryFormat> format) {
  Memory& memory = *functional_value(wrapper).memory;
  ArrayRef<SymInt> old = sym_sizes(*wrapper.impl());
  if (std::equal(old.begin(), old.end(), sizes.begin(), sizes.end())) return;
  Symbols strides = strides_for(sizes, format);
  SymInt room = sym_numel(*memory.value.impl()) + memory.offset -
                sym_offset(*wrapper.impl());
  if (product(sizes) <= room) {
    std::array<IValue, 4> args{
        wrapper, boxed_integers(sizes), boxed_integers(strides), IValue()};
    change_view(wrapper, *Dispatcher::get().find("as_strided", ""), args);
    return;
  }
  TensorBase flat = grown(unwrap(wrapper), sizes);
  replace(
      wrapper,
      taeda::functorch::replay(strided_step(sizes, strides, SymInt(0)), flat));
}

bool run_special(FunctionalLevel& level,
                 const OperatorEntry& op,
                 std::span<const IValue> given,
                 std::span<const IValue> values,
                 Stack& results) {
  std::string_view name = op.name;
  if (name == "lift_fresh") {
    results = call_with(op, values);
    results[0] = level.wrap(results[0].get<TensorBase>());
    return true;
  }
  if (name == "native_batch_norm") {
    return batch_norm(level, op, given, values, results);
  }
  if (!op.info->has(OpTag::InPlaceView)) return false;
  const TensorBase& self = given[0].get<TensorBase>();
  TAEDA_CHECK(level.holds(self),
              op.qualified_name(),
              ": mutating a non-functional tensor with a functional tensor is "
              "not allowed");
  if (name == "resize_") {
    level.resize(self, symbols_of(given[1]), format_of(given[2]));
  } else if (name == "resize_as_") {
    TensorBase like = given[1].get<TensorBase>();
    level.resize(self, sym_sizes(*like.impl()), format_of(given[2]));
  } else if (name == "set_") {
    set(level, op, given);
  } else {
    const OperatorEntry* view = functional_form(op);
    TAEDA_CHECK_AS(NotImplemented,
                   view != nullptr,
                   op.qualified_name(),
                   ": functionalize knows no view that does the same");
    level.change_view(self, *view, given);
  }
  results = {self};
  return true;
}

}  // namespace taeda::functorch
