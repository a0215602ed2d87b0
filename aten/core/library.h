// Operators of users: declared by schema, implemented per dispatch key.
#pragma once

#include <taeda/aten/core/boxing_impl.h>

#include <memory>
#include <string>
#include <string_view>

namespace taeda {

// The C++ class that user code handles may derive from TensorBase.
namespace boxing {
template <class T>
  requires(std::is_base_of_v<TensorBase, T> && !std::is_same_v<T, TensorBase>)
struct Read<T> {
  static T get(const IValue& v) { return T(Read<TensorBase>::get(v)); }
};
template <class T>
  requires(std::is_base_of_v<TensorBase, T> && !std::is_same_v<T, TensorBase>)
struct Read<std::vector<T>> {
  static std::vector<T> get(const IValue& v) {
    const auto& list = v.get<std::vector<TensorBase>>();
    return std::vector<T>(list.begin(), list.end());
  }
};
template <>
struct Read<std::string> {
  static std::string get(const IValue& v) { return v.get<std::string>(); }
};
template <>
struct Read<std::vector<int64_t>> {
  static std::vector<int64_t> get(const IValue& v) {
    return v.get<std::vector<int64_t>>();
  }
};
template <class T>
  requires(std::is_base_of_v<TensorBase, T>)
void push(Stack& s, const std::vector<T>& list) {
  s.emplace_back(std::vector<TensorBase>(list.begin(), list.end()));
}
}  // namespace boxing

// A C++ function as a boxed kernel. Arguments are taken from the stack's end.
template <class R, class... A>
class FunctionKernel final : public BoxedKernel {
 public:
  explicit FunctionKernel(R (*function)(A...)) : function_(function) {}
  void call(const OperatorEntry&, DispatchKeySet, Stack& stack) override {
    size_t base = stack.size() - sizeof...(A);
    call_with(stack, base, std::index_sequence_for<A...>());
  }

 private:
  template <size_t... K>
  void call_with(Stack& stack, size_t base, std::index_sequence<K...>) {
    std::tuple<boxing::Holder<A>...> held{
        boxing::Holder<A>(stack[base + K])...};
    if constexpr (std::is_void_v<R>) {
      function_(std::get<K>(held).get()...);
      stack.resize(base);
    } else {
      std::decay_t<R> result = function_(std::get<K>(held).get()...);
      stack.resize(base);
      boxing::push(stack, result);
    }
  }
  R (*function_)(A...);
};

// Where a kernel stands: one key, or the composite registrations.
enum class KernelPlace : uint8_t {
  Key,
  CompositeImplicit,  // all backends; recorded through what it calls
  CompositeExplicit,  // all backends; needs its own derivative
};
// A dispatch key's name or "CompositeImplicitAutograd" and its like; ValueError
// for anything else.
TAEDA_API KernelPlace parse_place(std::string_view name, DispatchKey* key);

// Note [Registrations]
// Kernels of users lie in layers above what stood at a key before them: the
// last one that is still there runs. An operator that is withdrawn keeps its
// entry, since callers hold it, without kernels and with kWithdrawn behind its
// name. Kernels live as long as the process: a thread may be in one.
using Registration = uint64_t;
inline constexpr std::string_view kWithdrawn = " (withdrawn)";

class TAEDA_API Library {
 public:
  // `key` is where `impl` puts kernels when it is given none.
  explicit Library(std::string ns,
                   std::string key = "CompositeImplicitAutograd")
      : namespace_(std::move(ns)), key_(std::move(key)) {}

  // Declares `name(args) -> returns` in this namespace. RuntimeError when the
  // operator exists.
  OperatorEntry& def(std::string_view schema);
  template <class R, class... A>
  OperatorEntry& def(std::string_view schema, R (*function)(A...)) {
    OperatorEntry& op = def(schema);
    implement(op,
              "CompositeImplicitAutograd",
              std::make_unique<FunctionKernel<R, A...>>(function));
    return op;
  }
  // Gives `name` (perhaps with ".overload") a kernel at a key.
  template <class R, class... A>
  void impl(std::string_view name, std::string_view key, R (*function)(A...)) {
    implement(
        find(name), key, std::make_unique<FunctionKernel<R, A...>>(function));
  }
  template <class R, class... A>
  void impl(std::string_view name, R (*function)(A...)) {
    impl(name, key_, function);
  }
  Registration impl(std::string_view name,
                    std::string_view key,
                    std::unique_ptr<BoxedKernel> kernel) {
    return implement(find(name), key, std::move(kernel));
  }
  // A kernel for all operators without one at the library's key, which must be
  // PrivateUse1. It lives on; the last one counts.
  void fallback(std::unique_ptr<BoxedKernel> kernel);
  // Takes a kernel away again; what stood below it runs.
  static void take_back(Registration kernel);
  // Takes back a declaration and all kernels of the operator.
  static void withdraw(OperatorEntry& op);
  const std::string& key() const { return key_; }

 private:
  OperatorEntry& find(std::string_view name);
  static Registration implement(OperatorEntry& op,
                                std::string_view key,
                                std::unique_ptr<BoxedKernel> kernel);
  std::string namespace_;
  std::string key_;
};

// aten::_copy_from(self, dst, non_blocking), which fills dst.
inline constexpr std::string_view kCopyFrom = "_copy_from";
TAEDA_API OperatorEntry& copy_from_operator();

// Runs an operator on arguments at the stack's end, which its results replace.
TAEDA_API void call_boxed(const OperatorEntry& op, Stack& stack, size_t count);
// The number of arguments that the schema text declares.
TAEDA_API size_t argument_count(const OperatorEntry& op);

// Runs the block that follows, with a Library `name`, when the program loads:
//   TAEDA_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); }
//   TAEDA_LIBRARY_IMPL(mine, CPU, m) { m.impl("f", f_on_cpu); }
#define TAEDA_LIBRARY(ns, name) \
  TAEDA_LIBRARY_IMPL(ns, CompositeImplicitAutograd, name)
#define TAEDA_LIBRARY_IMPL(ns, key, name)                         \
  static void taeda_library_##ns##_##key(::taeda::Library& name); \
  static const bool taeda_library_##ns##_##key##_done = [] {      \
    ::taeda::Library library(#ns, #key);                          \
    taeda_library_##ns##_##key(library);                          \
    return true;                                                  \
  }();                                                            \
  static void taeda_library_##ns##_##key(::taeda::Library& name)

}  // namespace taeda
