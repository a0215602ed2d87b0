#include <taeda/aten/core/library.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/split.h>

#include "../autograd/helpers.h"

namespace taeda {
namespace {

using autograd::tensor;
using autograd::values;
using Values = std::vector<float>;

TensorBase twice(const TensorBase& x) { return ops::add(x, x); }
TensorBase on_meta(const TensorBase& x) {
  return make_tensor("twice", x.sizes(), x.dtype(), DeviceType::Meta);
}
std::vector<TensorBase> scaled(TensorBaseList list, double factor) {
  std::vector<TensorBase> out;
  for (const TensorBase& t : list) out.push_back(ops::mul(t, factor));
  return out;
}

Stack call(const char* name, Stack stack, const char* overload = "") {
  OperatorEntry* op = Dispatcher::get().find(name, overload);
  TAEDA_CHECK(op != nullptr, "no operator ", name);
  call_boxed(*op, stack, stack.size());
  return stack;
}

TEST(Library, OperatorsOfUsersRun) {
  Library lib("cpp_test");
  lib.def("scaled(Tensor[] list, float factor) -> Tensor[]", scaled);
  Stack out = call("cpp_test::scaled",
                   {std::vector<TensorBase>{tensor({1, 2}), tensor({3})}, 2.0});
  auto& list = out[0].get<std::vector<TensorBase>>();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(values(list[0]), Values({2, 4}));
  EXPECT_EQ(values(list[1]), Values({6}));
}

TEST(Library, CompositesAreDifferentiatedThroughWhatTheyCall) {
  Library lib("cpp_test");
  lib.def("twice_composite(Tensor x) -> Tensor", twice);
  TensorBase x = tensor({1, 2}, true);
  Stack out = call("cpp_test::twice_composite", {x});
  autograd::backward({out[0].get<TensorBase>()}, {tensor({1, 10})});
  EXPECT_EQ(values(autograd::grad_of(x)), Values({2, 20}));
}

TEST(Library, TheKeyDecides) {
  Library lib("cpp_test");
  OperatorEntry& op = lib.def("twice(Tensor x) -> Tensor");
  expect_throws(ErrorKind::NotImplemented, "cpp_test::twice", [] {
    call("cpp_test::twice", {tensor({1})});
  });
  lib.impl("twice", "CPU", twice);
  lib.impl("twice", "Meta", on_meta);
  EXPECT_EQ(values(call("cpp_test::twice", {tensor({4})})[0].get<TensorBase>()),
            Values({8}));
  TensorBase meta = make_tensor("test", {5}, kFloat, DeviceType::Meta);
  Stack out = call("cpp_test::twice", {meta});
  EXPECT_TRUE(out[0].get<TensorBase>().is_meta());
  EXPECT_EQ(op.qualified_name(), "cpp_test::twice");
}

TEST(Library, WrongDeclarationsAreErrors) {
  Library lib("cpp_test");
  lib.def("again(Tensor x) -> Tensor");
  expect_throws(ErrorKind::Runtime, "multiple times", [&] {
    lib.def("again(Tensor x) -> Tensor");
  });
  lib.def("again.other(Tensor x) -> Tensor");
  expect_throws(
      ErrorKind::Runtime, "expected `name(", [&] { lib.def("no schema"); });
  expect_throws(ErrorKind::Runtime, "no operator", [&] {
    lib.impl("absent", "CPU", twice);
  });
  expect_throws(ErrorKind::Value, "could not parse dispatch key", [&] {
    lib.impl("again", "NoSuchKey", twice);
  });
}

TEST(Library, ArgumentsAreCountedInTheSchema) {
  Library lib("library_test_count");
  auto count = [&](std::string_view schema) {
    return argument_count(lib.def(schema));
  };
  EXPECT_EQ(count("f() -> Tensor"), 0u);
  EXPECT_EQ(count("g(Tensor(a!) x, *, int[2] y=[1, 2]) -> Tensor"), 2u);
  EXPECT_EQ(count("h(Tensor[] x, str s=\"a\") -> (Tensor, Tensor)"), 2u);
}

TEST(Boxing, RecordsAreCalledFromAStack) {
  Stack out =
      call("add", {tensor({1, 2}), tensor({10, 20}), int64_t{3}}, "Tensor");
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(values(out[0].get<TensorBase>()), Values({31, 62}));
  out = call("split", {tensor({1, 2, 3}), int64_t{2}, int64_t{0}}, "Tensor");
  EXPECT_EQ(out[0].get<std::vector<TensorBase>>().size(), 2u);
}

TEST(Boxing, InPlaceOperatorsLeaveWhatTheyWrote) {
  TensorBase x = tensor({1, 2});
  Stack out = call("add_", {x, tensor({1, 1}), int64_t{1}}, "Tensor");
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].get<TensorBase>().is_same(x));
  EXPECT_EQ(values(x), Values({2, 3}));
}

TEST(Boxing, WrongTypesAreErrors) {
  EXPECT_THROW(
      call("add", {std::string("x"), tensor({1}), int64_t{1}}, "Tensor"),
      Error);
  EXPECT_THROW(IValue(tensor({1})).to_int(), Error);
  EXPECT_THROW(IValue().get<std::string>(), Error);
}

struct Counting final : BoxedKernel {
  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    ++calls;
    ExcludeKeysGuard inner(DispatchKey::ZeroTensor);
    call_boxed(op, stack, argument_count(op));
  }
  int calls = 0;
};

TEST(Dispatcher, AFallbackSeesEveryOperator) {
  static Counting fallback;
  Dispatcher::get().set_fallback(DispatchKey::ZeroTensor, &fallback);
  ops::add(tensor({1}), tensor({2}));
  EXPECT_EQ(fallback.calls, 0);
  {
    IncludeKeysGuard on(DispatchKey::ZeroTensor);
    TensorBase sum = ops::add(ops::mul(tensor({2}), 3), tensor({1}));
    EXPECT_EQ(values(sum), Values({7}));
  }
  EXPECT_EQ(fallback.calls, 2);
}

TEST(Dispatcher, UndefinedArgumentsAreErrors) {
  expect_throws(ErrorKind::Runtime, "aten::add.Tensor", [] {
    ops::add(TensorBase(), TensorBase());
  });
}

}  // namespace
}  // namespace taeda
