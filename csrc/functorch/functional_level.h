// functionalize as a level: programs that write become programs that do not.
#pragma once

#include <taeda/csrc/functorch/functional_forms.h>
#include <taeda/csrc/functorch/functional_views.h>

namespace taeda::functorch {

// Note [Functional values]
// Wrappers of the level that would share memory share a Memory, which holds the
// value of a base, and know the steps that make them of it. An operator that
// writes is computed by its functional form; what it gives becomes the new
// value of the memory, views being put back into their base (Note [Views as
// steps]). Wrappers of the memory are made anew when they are asked for. So the
// operators outside see none that writes, and each tensor one value for ever.
struct Memory final : IntrusiveTarget {
  TensorBase value;   // of the base
  TensorBase origin;  // the tensor outside that it stands for, if any
  SymInt offset = 0;  // of the base in its storage, as wrappers show it
  const TensorImpl* first = nullptr;  // its first wrapper, only to compare with
  uint64_t writes = 0;
  bool recorded = false;    // whether autograd records a write to it
  bool has_views = false;   // whether more than one wrapper was made of it
  bool is_strided = false;  // whether a view counts on the strides of the base
  std::vector<int64_t> gaps;  // strides with gaps that `value` has no more
};
using MemoryPtr = IntrusivePtr<Memory>;

struct FunctionalValue;

class TAEDA_API FunctionalLevel final : public Level {
 public:
  // Without `keep_views` copies take the place of views, so that no two values
  // outside share memory. A level that is no transform lets autograd's own
  // calls through: what is recorded are then the wrappers.
  explicit FunctionalLevel(bool keep_views, bool is_transform = true)
      : keep_views_(keep_views), is_transform_(is_transform) {}
  void call(const OperatorEntry& op, Stack& stack) override;
  void call_below_autograd(const OperatorEntry& op, Stack& stack) override;
  bool keeps(const OperatorEntry& op) const override;
  TensorBase value_in(const TensorBase& wrapper) const override;
  bool is_transform() const override { return is_transform_; }
  bool keeps_views() const { return keep_views_; }
  const char* kind() const override { return "functionalize"; }

  // A wrapper with a memory of its own; of the level's wrappers, itself.
  TensorBase wrap(const TensorBase& value);
  // Wrappers of a function's arguments; those that share memory do so inside.
  std::vector<TensorBase> wrap_inputs(std::span<const TensorBase> inputs);
  // The present value; others as they are.
  TensorBase unwrap(const TensorBase& t) const;
  bool holds(const TensorBase& t) const { return level_of(t) == this; }
  // Whether an input was written to, or was made another tensor of.
  bool is_changed(const TensorBase& input) const;

  // Once the function is done: what was written to inputs, in their memory.
  void write_back();
  // What a result stands for outside: an input, a view of one, or a value.
  TensorBase output(const TensorBase& t) const;
  // The end: inputs hold the level, which holds them.
  void forget_inputs() { inputs_.clear(); }

  // What the operators of functional_special.cpp do to a wrapper.
  void change_view(const TensorBase& wrapper,
                   const OperatorEntry& op,
                   std::span<const IValue> args);
  void resize(const TensorBase& wrapper,
              ArrayRef<SymInt> sizes,
              std::optional<MemoryFormat> format);
  // The wrapper becomes an alias of another one.
  void become(const TensorBase& wrapper, const TensorBase& source);
  // `value` is what the wrapper holds from now on.
  void write(const OperatorEntry& op,
             const TensorBase& wrapper,
             TensorBase value);

 private:
  struct Input {
    TensorBase outside, wrapper;
    MemoryPtr memory;
    ViewSteps steps;
  };
  // Where a view lies and what it shows.
  struct View {
    ViewSteps steps;
    TensorBase value;
  };

  void run(const OperatorEntry& op, Stack& stack);
  void run_writing(const OperatorEntry& op,
                   std::span<const IValue> given,
                   Stack& results);
  void write_all(const OperatorEntry& op,
                 std::span<const IValue> given,
                 Computed& computed,
                 Stack& results);
  void run_pure(const OperatorEntry& op,
                std::span<const IValue> given,
                Stack& results);
  std::vector<IValue> values_of(std::span<const IValue> given) const;

  TensorBase make(const TensorBase& value,
                  MemoryPtr memory,
                  ViewSteps steps,
                  const TensorBase& like);
  TensorBase wrap_view(const TensorBase& of, View view);
  TensorBase wrap_result(const TensorBase& value,
                         std::span<const IValue> given);
  View view_of(const TensorBase& of,
               const OperatorEntry& op,
               std::span<const IValue> args) const;
  void show_view(const TensorBase& wrapper, View view);
  void replace(const TensorBase& wrapper, const TensorBase& value);
  void share_memory(std::span<const TensorBase> inputs,
                    std::span<const size_t> group,
                    std::vector<TensorBase>& wrappers);
  void write_back(const Input& input);

  bool keep_views_;
  bool is_transform_;
  std::vector<Input> inputs_;
};

// Operators that are more than a write into their arguments (resize_, set_,
// views in place, statistics of batch norm). False for all others. `given` are
// what the function gave, `values` what is inside.
bool run_special(FunctionalLevel& level,
                 const OperatorEntry& op,
                 std::span<const IValue> given,
                 std::span<const IValue> values,
                 Stack& results);

// What a wrapper of a FunctionalLevel holds.
struct FunctionalValue final : Wrapped {
  FunctionalValue(LevelPtr l, TensorBase v, MemoryPtr m, ViewSteps s)
      : Wrapped(std::move(l), std::move(v), -1),
        memory(std::move(m)),
        steps(std::move(s)),
        seen(memory->writes) {}
  MemoryPtr memory;
  ViewSteps steps;
  uint64_t seen;       // the number of writes that `value` comes after
  bool moved = false;  // whether it was made another view in place
};
// Of a wrapper of a FunctionalLevel. Autograd makes further wrappers of a value
// (of arguments that a Function returns); such a one has a memory of its own.
TAEDA_API FunctionalValue& functional_value(const TensorBase& wrapper);

}  // namespace taeda::functorch
