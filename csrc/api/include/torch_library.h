// Registration of operators in the notation of PyTorch's C++ programs.
#pragma once

#include <taeda/aten/core/dispatcher.h>
#include <taeda/torch_namespace.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace taeda::boxing {
template <>
struct Read<::taeda::front::Device> {
  static ::taeda::front::Device get(const IValue& v) {
    return v.get<::taeda::Device>();
  }
};
}  // namespace taeda::boxing

namespace taeda::front {

// The name in a schema of a C++ type of arguments or results.
template <class T>
struct SchemaName {
  static_assert(sizeof(T) == 0, "no type of schemas is this C++ type's");
};
#define TAEDA_SCHEMA_NAME(type, text)         \
  template <>                                 \
  struct SchemaName<type> {                   \
    static std::string get() { return text; } \
  };
TAEDA_SCHEMA_NAME(Tensor, "Tensor")
TAEDA_SCHEMA_NAME(TensorBase, "Tensor")
TAEDA_SCHEMA_NAME(int64_t, "int")
TAEDA_SCHEMA_NAME(double, "float")
TAEDA_SCHEMA_NAME(bool, "bool")
TAEDA_SCHEMA_NAME(std::string, "str")
TAEDA_SCHEMA_NAME(std::string_view, "str")
TAEDA_SCHEMA_NAME(Scalar, "Scalar")
TAEDA_SCHEMA_NAME(ScalarType, "ScalarType")
TAEDA_SCHEMA_NAME(::taeda::Device, "Device")
#undef TAEDA_SCHEMA_NAME
template <class T>
struct SchemaName<std::vector<T>> {
  static std::string get() { return SchemaName<T>::get() + "[]"; }
};
template <class T>
struct SchemaName<ArrayRef<T>> {
  static std::string get() { return SchemaName<T>::get() + "[]"; }
};
template <class T>
struct SchemaName<std::optional<T>> {
  static std::string get() { return SchemaName<T>::get() + "?"; }
};
template <>
struct SchemaName<void> {
  static std::string get() { return "()"; }
};
template <class... T>
struct SchemaName<std::tuple<T...>> {
  static std::string get() {
    std::string text;
    ((text += (text.empty() ? "(" : ", ") + SchemaName<T>::get()), ...);
    return text + ")";
  }
};

// "name(Tensor _0, float _1) -> Tensor" of a function.
template <class R, class... A>
std::string schema_of(std::string_view name, R (*)(A...)) {
  std::string text(name);
  int count = 0;
  auto add = [&](const std::string& type) {
    text += (count == 0 ? "(" : ", ") + type + " _" + std::to_string(count);
    ++count;
  };
  (add(SchemaName<std::decay_t<A>>::get()), ...);
  if (count == 0) text += "(";
  return text + ") -> " + SchemaName<R>::get();
}

// A function for a key of its own: m.impl("f", torch::dispatch(kCPU, f)).
template <class F>
struct Dispatched {
  std::string key;
  F function;
};

class OperatorHandle;
// A kernel that takes its arguments from a stack, whatever the operator.
class CppFunction {
 public:
  template <auto function>
  static CppFunction makeFromBoxedFunction() {
    return CppFunction(std::make_unique<Boxed<function>>());
  }
  std::unique_ptr<BoxedKernel> take() { return std::move(kernel_); }

 private:
  template <auto function>
  struct Boxed final : BoxedKernel {
    void call(const OperatorEntry& op,
              DispatchKeySet keys,
              Stack& stack) override {
      run(OperatorHandle(const_cast<OperatorEntry*>(&op)), keys, stack);
    }
    // Handles are complete where this is used.
    template <class Handle>
    static void run(const Handle& op, DispatchKeySet keys, Stack& stack) {
      if constexpr (requires { function(op, &stack); }) {
        function(op, &stack);
      } else {
        function(op, keys, &stack);
      }
    }
  };
  explicit CppFunction(std::unique_ptr<BoxedKernel> kernel)
      : kernel_(std::move(kernel)) {}
  std::unique_ptr<BoxedKernel> kernel_;
};

class Library : public ::taeda::Library {
 public:
  using ::taeda::Library::Library;

  OperatorEntry& def(std::string_view schema) {
    return ::taeda::Library::def(schema);
  }
  // A schema, or a name alone: then the schema is the C++ function's.
  template <class F>
  OperatorEntry& def(std::string_view text, F function) {
    auto* pointer = +function;
    bool whole = text.find('(') != std::string_view::npos;
    return ::taeda::Library::def(
        whole ? std::string(text) : schema_of(text, pointer), pointer);
  }
  template <class F>
  void impl(std::string_view name, F function) {
    ::taeda::Library::impl(name, +function);
  }
  template <class F>
  void impl(std::string_view name, Dispatched<F> kernel) {
    ::taeda::Library::impl(name, kernel.key, +kernel.function);
  }
  void impl(std::string_view name, CppFunction kernel) {
    ::taeda::Library::impl(name, key(), kernel.take());
  }
  void fallback(CppFunction kernel) {
    ::taeda::Library::fallback(kernel.take());
  }
};

// An operator by its name, called with C++ values.
template <class Signature>
class TypedOperator;
template <class R, class... A>
class TypedOperator<R(A...)> {
 public:
  explicit TypedOperator(OperatorEntry* op) : op_(op) {}
  R call(A... arguments) const {
    Stack stack;
    (boxing::push(stack, arguments), ...);
    call_boxed(*op_, stack, sizeof...(A));
    if constexpr (!std::is_void_v<R>) {
      return boxing::Result<R>::pop(stack, 0);
    }
  }

 private:
  OperatorEntry* op_;
};
class OperatorHandle {
 public:
  explicit OperatorHandle(OperatorEntry* op) : op_(op) {}
  template <class Signature>
  TypedOperator<Signature> typed() const {
    return TypedOperator<Signature>(op_);
  }
  const OperatorEntry& entry() const { return *op_; }
  // "aten::add.Tensor", where PyTorch has a struct that prints so.
  std::string operator_name() const { return op_->qualified_name(); }

 private:
  OperatorEntry* op_;
};
class Dispatcher {
 public:
  static Dispatcher singleton() { return {}; }
  // RuntimeError when there is no such operator.
  OperatorHandle findSchemaOrThrow(const char* name,
                                   const char* overload) const {
    OperatorEntry* op = ::taeda::Dispatcher::get().find(name, overload);
    TAEDA_CHECK(
        op != nullptr, "Could not find schema for ", name, ".", overload);
    return OperatorHandle(op);
  }
};

}  // namespace taeda::front

namespace torch {
using CppFunction = ::taeda::front::CppFunction;
namespace jit {
using Stack = ::taeda::Stack;
}
using Library = ::taeda::front::Library;
using Dispatcher = ::taeda::front::Dispatcher;
template <class F>
::taeda::front::Dispatched<F> dispatch(const char* key, F function) {
  return {key, function};
}
}  // namespace torch
namespace c10 {
using OperatorHandle = ::taeda::front::OperatorHandle;
using Dispatcher = ::taeda::front::Dispatcher;
}  // namespace c10

#define TORCH_FN(function) (function)
#define TAEDA_LIBRARY_BLOCK_(ns, key, name, number)                          \
  static void torch_library_##ns##_##key##_##number(::torch::Library& name); \
  static const bool torch_library_##ns##_##key##_##number##_done = [] {      \
    ::torch::Library library(#ns, #key);                                     \
    torch_library_##ns##_##key##_##number(library);                          \
    return true;                                                             \
  }();                                                                       \
  static void torch_library_##ns##_##key##_##number(::torch::Library& name)
#define TAEDA_LIBRARY_BLOCK(ns, key, name, number) \
  TAEDA_LIBRARY_BLOCK_(ns, key, name, number)
#define TORCH_LIBRARY(ns, name) \
  TAEDA_LIBRARY_BLOCK(ns, CompositeImplicitAutograd, name, __COUNTER__)
#define TORCH_LIBRARY_FRAGMENT(ns, name) TORCH_LIBRARY(ns, name)
#define TORCH_LIBRARY_IMPL(ns, key, name) \
  TAEDA_LIBRARY_BLOCK(ns, key, name, __COUNTER__)
