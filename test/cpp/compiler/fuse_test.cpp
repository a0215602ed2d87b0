// Which calls become one kernel, and that it computes what they do.
#include <taeda/csrc/compiler/graph/executor.h>
#include <taeda/csrc/compiler/graph/overwrite.h>
#include <taeda/csrc/compiler/graph/trace.h>
#include <taeda/csrc/compiler/loops/fuse.h>
#include <taeda/csrc/compiler/loops/region.h>
#include <taeda/csrc/compiler/loops/simplify.h>
#include <taeda/taeda.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace taeda::compiler {
namespace {

using Tensors = std::vector<Tensor>;
constexpr int64_t kDims[] = {0, 1};
constexpr IntArrayRef kFirst(kDims, 1), kSecond(kDims + 1, 1);

Graph traced(const std::function<Tensors(const Tensors&)>& function,
             const Tensors& inputs) {
  Program program = [&](std::span<const TensorBase> given) {
    Tensors wrapped;
    for (const TensorBase& t : given) wrapped.push_back(Tensor(t));
    std::vector<TensorBase> results;
    for (const Tensor& t : function(wrapped)) results.push_back(t);
    return results;
  };
  std::vector<TensorBase> plain(inputs.begin(), inputs.end());
  return std::move(trace(program, plain, /*joint=*/false).graph);
}

std::vector<std::vector<std::string>> regions_of(const Graph& graph) {
  std::vector<std::vector<std::string>> found;
  for (const Node& node : graph.nodes) {
    if (!node.region) continue;
    found.emplace_back();
    for (const Node& call : node.region->body.nodes) {
      found.back().push_back(call.op->name);
    }
  }
  return found;
}

// Fuses, runs the kernels and compares; gives the regions.
std::vector<std::vector<std::string>> check_fused(
    const std::function<Tensors(const Tensors&)>& function,
    const Tensors& inputs) {
  Graph graph = traced(function, inputs);
  fuse(graph, {.blocking = true});
  check(graph);
  auto regions = regions_of(graph);
  Executor executor(std::move(graph));
  std::vector<TensorBase> plain(inputs.begin(), inputs.end());
  std::vector<TensorBase> results = executor.run(plain);
  Tensors expected = function(inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(allclose(Tensor(results[i]), expected[i], 1e-5, 1e-5));
  }
  return regions;
}

TEST(Fuse, APointwiseChainIsOneKernel) {
  auto regions = check_fused(
      [](const Tensors& t) { return Tensors{tanh(t[0] * t[1]) + t[0]}; },
      {randn({33, 65}), randn({33, 65})});
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].size(), 3u);
}

TEST(Fuse, ACallAloneStays) {
  auto regions = check_fused(
      [](const Tensors& t) { return Tensors{tanh(t[0])}; }, {randn({33, 65})});
  EXPECT_TRUE(regions.empty());
}

TEST(Fuse, AKernelTakesPartByItsDefinition) {
  auto regions = check_fused(
      [](const Tensors& t) { return Tensors{softmax(t[0] * 2, -1) + t[0]}; },
      {randn({17, 130})});
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0], (std::vector<std::string>{"mul", "_softmax", "add"}));
}

// What stands between two calls keeps them apart.
TEST(Fuse, NoCallOfOthersLiesBetween) {
  auto regions = check_fused(
      [](const Tensors& t) {
        Tensor a = t[0] + 1;
        Tensor b = matmul(a, t[1]);
        return Tensors{a * b};
      },
      {randn({16, 16}), randn({16, 16})});
  EXPECT_TRUE(regions.empty());
}

TEST(Fuse, HeavyWorkIsNotDoneAgainForEachRow) {
  auto regions =
      check_fused([](const Tensors& t) { return Tensors{t[0] + exp(t[1])}; },
                  {randn({64, 32}), randn({32})});
  EXPECT_TRUE(regions.empty());
}

TEST(Fuse, ReductionsOfOtherAxesAreOtherKernels) {
  auto regions = check_fused(
      [](const Tensors& t) {
        Tensor x = t[0] * t[1];
        return Tensors{sum(x, kFirst), sum(x, kSecond)};
      },
      {randn({64, 32}), randn({64, 32})});
  for (const auto& calls : regions) EXPECT_LE(calls.size(), 2u);
}

TEST(Fuse, AViewThatOthersReadIsMadeBesideTheRegion) {
  auto regions = check_fused(
      [](const Tensors& t) {
        Tensor x = (t[0] * t[1]).view({8, 64});
        return Tensors{x, tanh(x) + 1};
      },
      {randn({16, 32}), randn({16, 32})});
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].size(), 4u);
}

TEST(Fuse, ColumnsAreSummedWhereTheyLieSideBySide) {
  auto regions = check_fused(
      [](const Tensors& t) {
        Tensor x = t[0] * t[1];
        return Tensors{x, sum(x, kFirst)};
      },
      {randn({300, 700}), randn({300, 700})});
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].size(), 2u);
}

// Note [Siblings]: gelu, made again for a product, beside its own backward.
TEST(Fuse, CostlyFormulasOfOneInputGoTogether) {
  auto regions = check_fused(
      [](const Tensors& t) {
        Tensor rows = gelu(t[0]).view({60, 40});
        Tensor g = gelu_backward(matmul(t[1], t[2]), t[0]);
        return Tensors{matmul(rows.t(), t[3]), g, sum(g, kFirst)};
      },
      {randn({4, 15, 40}),
       randn({4, 15, 20}),
       randn({20, 40}),
       randn({60, 8})});
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].size(), 5u);
}

// Both read the row, of which one has it along another axis of the result.
TEST(Fuse, OneInputAlongTwoAxesStaysFused) {
  auto regions = check_fused(
      [](const Tensors& t) {
        return Tensors{(t[0] + 1).unsqueeze(0) * (t[0] * 2).unsqueeze(1)};
      },
      {randn({48})});
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].size(), 5u);
}

TEST(Fuse, CostlyFormulasWithAProductBetweenStayApart) {
  auto regions = check_fused(
      [](const Tensors& t) {
        Tensor a = tanh(t[0]);
        return Tensors{exp(t[0]), matmul(a, t[1]) * gelu(t[0])};
      },
      {randn({16, 16}), randn({16, 16})});
  std::vector<std::vector<std::string>> expected{{"tanh", "exp"},
                                                 {"gelu", "mul"}};
  std::sort(regions.begin(), regions.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(regions, expected);
}

TEST(Fuse, AProductWithOneIsDropped) {
  Graph graph = traced(
      [](const Tensors& t) {
        return Tensors{tanh(t[0] * 1), t[0] * 1, tanh(t[0] * 2)};
      },
      {randn({8})});
  size_t before = graph.nodes.size();
  loops::drop_identities(graph);
  check(graph);
  EXPECT_EQ(graph.nodes.size(), before - 1);  // not the graph's result
}

// A tensor that lies otherwise than the graph says is not read by the kernel.
// How many of the results take the memory of the inputs at the same places.
size_t overwritten(const std::function<Tensors(const Tensors&)>& function,
                   const Tensors& inputs) {
  Tensors expected = function(inputs);
  Graph graph = traced(function, inputs);
  fuse(graph, {.blocking = true});
  std::vector<Overwrite> writes;
  for (size_t i = 0; i < inputs.size() && i < expected.size(); ++i) {
    writes.push_back({graph.inputs[i], graph.outputs[i]});
  }
  std::vector<ValueId> into = overwrite_inputs(graph, writes);
  check(graph);
  auto count = into.size() - static_cast<size_t>(std::count(
                                 into.begin(), into.end(), kNoValue));
  Executor executor(std::move(graph), std::move(into));
  Tensors given;
  for (const Tensor& t : inputs) given.push_back(t.clone());
  std::vector<TensorBase> results =
      executor.run(std::vector<TensorBase>(given.begin(), given.end()));
  size_t same = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(allclose(Tensor(results[i]), expected[i], 1e-5, 1e-5));
    same += i < given.size() && results[i].is_same(given[i]);
  }
  EXPECT_EQ(same, count);
  return count;
}

TEST(Overwrite, ResultsOfRegionsTakeTheInputsMemory) {
  Tensors inputs{randn({33, 40}), randn({33, 40})};
  auto step = [](const Tensors& t) {
    Tensor m = t[0] * 0.9 + t[1];
    return Tensors{m, t[1] - tanh(m)};
  };
  EXPECT_EQ(overwritten(step, inputs), 2u);
}

TEST(Overwrite, WhatIsReadLaterIsNotOverwritten) {
  Tensors inputs{randn({32, 32}), randn({32, 32})};
  auto product_after = [](const Tensors& t) {
    Tensor m = t[0] * 0.9 + t[1];
    return Tensors{m, matmul(t[0], m)};
  };
  EXPECT_EQ(overwritten(product_after, inputs), 0u);
  auto turned = [](const Tensors& t) {
    return Tensors{t[0].t() * 0.9 + t[0] + t[1]};
  };
  EXPECT_EQ(overwritten(turned, inputs), 0u);
}

TEST(Overwrite, CallsThatDoNotNeedTheResultComeBefore) {
  Tensors inputs{randn({32, 32}), randn({32, 32})};
  auto step = [](const Tensors& t) {
    Tensor m = t[0] * 0.9 + 1;
    return Tensors{m, matmul(t[0], t[1])};
  };
  EXPECT_EQ(overwritten(step, inputs), 1u);
}

TEST(Fuse, AKernelRefusesOtherStrides) {
  Tensor x = randn({16, 32});
  Graph graph = traced(
      [](const Tensors& t) { return Tensors{tanh(t[0] * 2) + t[0]}; }, {x});
  fuse(graph, {.blocking = true});
  ASSERT_EQ(graph.nodes.size(), 1u);
  Region& region = *graph.nodes[0].region;
  TensorBase out = make_tensor("test", {16, 32}, kFloat);
  TensorBase plain = x, turned = randn({32, 16}).transpose(0, 1);
  IntArrayRef numbers = as_plain(region.numbers);
  EXPECT_TRUE(region.run({&plain, 1}, {&out, 1}, numbers));
  EXPECT_FALSE(region.run({&turned, 1}, {&out, 1}, numbers));
}

}  // namespace
}  // namespace taeda::compiler
