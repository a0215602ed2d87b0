// Calls that a class of tensors computed before, computed without Python.
#pragma once

#include <taeda/csrc/boxed/module.h>
#include <taeda/csrc/python/tensor_type.h>

#include <span>
#include <utility>
#include <vector>

namespace taeda::python {

// Note [Known calls]
// A tensor of a wrapper class stands for the one inside (`_local_tensor`) under
// a description (`_spec`). Its handler finds out how a call is computed; often
// that is the operator on the tensors inside, some of them moved, some sizes
// replaced, and a wrapper with a known description for each result. Then it
// says so while the call is under way (`_remember_call`), and equal calls are
// computed here from then on.
//
// Calls are equal whose operators, tokens of descriptions (`_token`: an integer
// that equal descriptions share) and other arguments are, real numbers left
// aside. Nothing is known of calls in modes, or with a tensor of another class,
// a symbol, a generator, or a wrapper whose writes go elsewhere (`_origin`).
// Where the operator fails on the tensors inside, the handler gets the call,
// unless tensors were moved: other ranks may have taken part in that.
//
// The table belongs to who holds the GIL. It is emptied when it has many
// entries, since sizes may differ in every step of a program; what runs
// meanwhile in another thread holds its plan.
class KnownCall {
 public:
  // With `may_be_known` false, calls inside are not taken for this one.
  KnownCall(const OperatorEntry& op, Stack& stack, bool may_be_known);
  ~KnownCall();
  KnownCall(const KnownCall&) = delete;
  KnownCall& operator=(const KnownCall&) = delete;

  // Puts the results in the place of the arguments, where the call is known.
  bool run(Stack& stack);
  void remember(const py::dict& moves,
                const py::dict& replaced,
                const py::list& outputs);

  // A result: what its wrapper looks like, and its description.
  struct Output {
    TensorBase like;  // undefined where the result is not wrapped
    Ref description;
  };
  struct Plan {
    // What makes of a tensor inside the one that the operator gets, by its
    // place among these.
    std::vector<std::pair<size_t, Ref>> moves;
    std::vector<std::pair<size_t, IValue>> replaced;  // arguments by place
    std::vector<Output> outputs;
    bool writes = false;
  };

 private:
  struct Table;
  friend void bind_known_calls(py::module_ m);

  Stack on_the_inside(const Plan& plan, std::span<IValue> args);
  bool run_inside(const Plan& plan, Stack& stack);
  bool wrap_results(const Plan& plan, std::span<IValue> args, Stack& made);

  bool add(const IValue& v);
  template <class T>
  bool add_part(const T& value);
  bool add_number(const TensorBase& t);
  bool add_wrapper(const TensorBase& t);
  template <class... Words>
  void put(Words... words) {
    (words_.push_back(static_cast<int64_t>(words)), ...);
  }

  const OperatorEntry& op_;
  KnownCall* outer_;
  bool usable_;
  SmallVector<int64_t, 24> words_;
  SmallVector<TensorBase, 4> inside_;  // of the arguments, in their order
};

}  // namespace taeda::python
