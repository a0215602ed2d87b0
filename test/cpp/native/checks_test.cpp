// Wrong arguments to operators that move memory by index: each is refused, and
// what was to be written is as before.
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/bmm.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/conv2d.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/embedding.h>
#include <taeda/gen/ops/gather.h>
#include <taeda/gen/ops/index.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/linear.h>
#include <taeda/gen/ops/masked_select.h>
#include <taeda/gen/ops/max_pool2d.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/nll_loss.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/scatter.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/sort.h>
#include <taeda/gen/ops/split.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/take.h>
#include <taeda/gen/ops/topk.h>
#include <taeda/gen/ops/unfold.h>
#include <taeda/gen/ops/view.h>

#include "../autograd/helpers.h"

#include <limits>

namespace taeda {
namespace {

using autograd::tensor;
using autograd::values;
using Values = std::vector<float>;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

TensorBase longs(std::vector<int64_t> list) {
  TensorBase t = make_tensor(
      "test", IntArrayRef({static_cast<int64_t>(list.size())}), kLong);
  std::copy(list.begin(), list.end(), t.mutable_data<int64_t>());
  return t;
}
TensorBase ones(std::vector<int64_t> sizes) {
  TensorBase t = make_tensor("test", sizes, kFloat);
  std::fill_n(t.mutable_data<float>(), t.numel(), 1.0f);
  return t;
}

template <class F>
void refused(F f) {
  EXPECT_THROW(f(), Error);
}

TEST(Checks, IndicesOutOfRange) {
  TensorBase x = tensor({1, 2, 3});
  for (int64_t bad : {int64_t{3}, int64_t{-4}, kHuge, kLeast}) {
    SCOPED_TRACE(bad);
    TensorBase index = longs({0, bad});
    refused([&] { ops::index(x, {OptionalTensor(index)}); });
    refused([&] { ops::take(x, index); });
    refused([&] { ops::index_select(x, 0, index); });
    refused([&] { ops::gather(x, 0, index); });
    refused([&] { ops::embedding(ones({3, 2}), index); });
    refused([&] { ops::scatter(x, 0, index, tensor({1, 1})); });
    refused([&] { ops::scatter_(x, 0, index, tensor({1, 1})); });
    refused([&] { ops::select(x, 0, bad); });
    refused([&] { ops::nll_loss(ones({1, 3}), longs({bad})); });
  }
  EXPECT_EQ(values(x)[2], 3);
}

TEST(Checks, NegativeIndicesWhereTheyAreNotAllowed) {
  TensorBase x = tensor({1, 2, 3});
  refused([&] { ops::gather(x, 0, longs({-1})); });
  refused([&] { ops::embedding(ones({3, 2}), longs({-1})); });
  EXPECT_EQ(values(ops::take(x, longs({-1}))), Values({3}));
}

TEST(Checks, DimsOutOfRange) {
  TensorBase x = ones({2, 3});
  for (int64_t bad : {int64_t{2}, int64_t{-3}, kHuge, kLeast}) {
    SCOPED_TRACE(bad);
    refused([&] { ops::cumsum(x, bad); });
    refused([&] { ops::sort(x, bad); });
    refused([&] { ops::select(x, bad, 0); });
    refused([&] { ops::split(x, 1, bad); });
    refused([&] { ops::cat({x, x}, bad); });
    refused([&] { ops::gather(x, bad, longs({0})); });
    refused([&] { ops::unfold(x, bad, 1, 1); });
  }
  refused([&] { ops::stack({x, x}, 3); });
}

TEST(Checks, SlicesAreClampedAndNarrowIsNot) {
  TensorBase x = tensor({1, 2, 3});
  EXPECT_EQ(values(ops::slice(x, 0, kLeast, kHuge)), Values({1, 2, 3}));
  EXPECT_EQ(ops::slice(x, 0, 2, 1).numel(), 0);
  EXPECT_EQ(values(ops::slice(x, 0, 0, kHuge, kHuge)), Values({1}));
  refused([&] { ops::slice(x, 0, 0, 3, 0); });
  refused([&] { ops::slice(x, 0, 0, 3, -1); });
  refused([&] { ops::narrow(x, 0, 1, 3); });
  refused([&] { ops::narrow(x, 0, 0, -1); });
  refused([&] { ops::narrow(x, 0, 1, kHuge); });
}

TEST(Checks, ViewsStayInsideTheStorage) {
  TensorBase x = ones({2, 3});
  refused([&] { ops::as_strided(x, {2, 3}, {3, 2}); });
  refused([&] { ops::as_strided(x, {7}, {1}); });
  refused([&] { ops::as_strided(x, {6}, {1}, 1); });
  refused([&] { ops::as_strided(x, {2}, {-1}, 1); });
  refused([&] { ops::as_strided(x, {2}, {1}, -1); });
  refused([&] { ops::as_strided(x, {kHuge}, {kHuge}); });
  refused([&] { ops::view(x, {4, 2}); });
  refused([&] { ops::view(x, {-1, -1}); });
  refused([&] { ops::view(x, {-2, 3}); });
  refused([&] { ops::reshape(x, {kHuge, kHuge}); });
  refused([&] { ops::view(ones({0}), {-1, 0}); });
  refused([&] { ops::unfold(x, 0, 3, 1); });
  refused([&] { ops::unfold(x, 0, 1, 0); });
}

TEST(Checks, ShapesOfProducts) {
  refused([] { ops::mm(ones({2, 3}), ones({2, 3})); });
  refused([] { ops::mm(ones({2}), ones({2, 3})); });
  refused([] { ops::bmm(ones({2, 2, 3}), ones({3, 3, 2})); });
  refused([] { ops::linear(ones({2, 3}), ones({4, 2})); });
  refused([] {
    TensorBase out = make_tensor("test", {2, 2}, kLong);
    ops::mm_out(ones({2, 3}), ones({3, 2}), out);
  });
  EXPECT_EQ(values(ops::view(ops::mm(ones({2, 0}), ones({0, 1})), {2})),
            Values({0, 0}));
}

TEST(Checks, WindowsFitTheInput) {
  TensorBase x = ones({1, 2, 3, 3});
  refused([&] { ops::conv2d(x, ones({1, 2, 4, 4})); });
  refused([&] { ops::conv2d(x, ones({1, 3, 1, 1})); });
  refused([&] { ops::conv2d(x, ones({1, 2, 1, 1}), {}, {0, 0}); });
  refused([&] {
    const int64_t no_padding[] = {0, 0};
    ops::conv2d(
        x, ones({3, 1, 1, 1}), {}, {1, 1}, IntArrayRef(no_padding), {1, 1}, 2);
  });
  refused([&] { ops::conv2d(x, ones({1, 2, 1, 1}), ones({2})); });
  refused([&] { ops::max_pool2d(x, {4, 4}); });
  refused([&] { ops::max_pool2d(x, {2, 2}, {1, 1}, {2, 2}); });
  refused([&] { ops::max_pool2d(x, {0, 0}); });
}

TEST(Checks, MixedShapesAndTypes) {
  TensorBase x = ones({2, 3});
  refused([&] { ops::cat({x, ones({2, 2})}, 0); });
  refused([&] { ops::stack({x, ones({2, 2})}); });
  refused([&] { ops::masked_select(x, ones({2, 3})); });
  refused([&] { ops::topk(x, 4); });
  refused([&] { ops::topk(x, -1); });
  refused([&] { ops::gather(x, 0, ones({1, 1})); });
  refused([&] { ops::gather(x, 0, ops::view(longs({0, 0, 0, 0}), {1, 4})); });
  refused([&] { ops::index_select(x, 0, ones({1})); });
  refused([&] { ops::split(x, -1); });
  refused([&] { ops::split(x, {1, 2}); });
}

TEST(Checks, ResultsOfDataDependentSize) {
  TensorBase x = tensor({0, 5, 0, 7});
  EXPECT_EQ(ops::nonzero(x).sizes(), IntArrayRef({2, 1}));
  EXPECT_EQ(ops::nonzero(ones({})).sizes(), IntArrayRef({1, 0}));
  EXPECT_EQ(ops::nonzero(make_tensor("test", {0, 3}, kFloat)).sizes(),
            IntArrayRef({0, 2}));
}

TEST(Checks, DevicesWithoutMemoryAreNotRead) {
  TensorBase meta = make_tensor("test", {2, 3}, kFloat, DeviceType::Meta);
  EXPECT_EQ(ops::mm(meta, make_tensor("test", {3, 4}, kFloat, DeviceType::Meta))
                .sizes(),
            IntArrayRef({2, 4}));
  refused([&] { ops::nonzero(meta); });
}

}  // namespace
}  // namespace taeda
