// Recording calls with symbols among their integers.
#pragma once

#include <taeda/aten/iter/symbolic_caller.h>
#include <taeda/csrc/autograd/record.h>

#include <unordered_map>

namespace taeda::autograd {

namespace boxed_wrapper {

// Integers stand for themselves where an adapter reads them.
template <class A>
using Holder = boxing::Holder<std::conditional_t<
    std::is_same_v<std::decay_t<A>, SymInt> ||
        std::is_same_v<std::decay_t<A>, std::optional<SymInt>>,
    std::decay_t<A>,
    A>>;

// The function's parameters are those of the operator with SymInt for int64_t.
template <class R, class... A>
[[gnu::cold]] void call(void* pointer, Stack& stack) {
  size_t base = stack.size() - sizeof...(A);
  auto* function = reinterpret_cast<R (*)(A...)>(pointer);
  [&]<size_t... K>(std::index_sequence<K...>) {
    std::tuple<Holder<A>...> held{Holder<A>(stack[base + K])...};
    R result = function(std::get<K>(held).get()...);
    stack.resize(base);
    boxing::push(stack, result);
  }(std::index_sequence_for<A...>());
}

}  // namespace boxed_wrapper

// The wrappers over SymInt of operators with a derivative, by their entries.
// Filled once by generated functions, afterwards only read.
class SymbolicWrappers {
 public:
  struct Wrapper {
    void* function;
    void (*call)(void* function, Stack& stack);
  };

  template <class R, class... A>
  void add(const OperatorEntry& op, R (*function)(A...)) {
    table_[&op] = {reinterpret_cast<void*>(function),
                   &boxed_wrapper::call<R, A...>};
  }
  const Wrapper* find(const OperatorEntry& op) const {
    auto found = table_.find(&op);
    return found == table_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<const OperatorEntry*, Wrapper> table_;
};

}  // namespace taeda::autograd
