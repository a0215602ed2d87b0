// Which threads of a CUDA device compute what, and how kernels are launched.
#include <taeda/csrc/compiler/loops/print_cuda.h>

#include <gtest/gtest.h>

namespace taeda::compiler::loops {
namespace {

constexpr CudaDevice kLarge{132, 48 * 1024, 2048};
constexpr CudaDevice kSmall{1, 48 * 1024, 2048};

Place at(std::vector<int64_t> strides) {
  return {0, {strides.begin(), strides.end()}};
}

Fold sum(Program& p) {
  expr::Graph& g = p.expressions;
  expr::Id both = g.binary(expr::BinaryOp::Add, g.name("a"), g.name("b"));
  return {g.integer(0), both, g.name("acc")};
}

Program copy_of(int64_t rows, int64_t columns, ScalarType dtype, int64_t step) {
  Program p;
  p.axis(rows, false);
  p.axis(columns, false);
  Var x = p.load(p.buffer(dtype, false), at({step, 1}));
  p.store(x, p.buffer(dtype, true), at({columns, 1}));
  return p;
}

// Sums of a matrix along its rows or its columns.
Program sum_of(int64_t rows, int64_t columns, bool along_rows) {
  Program p;
  p.axis(rows, !along_rows);
  p.axis(columns, along_rows);
  Var x = p.load(p.buffer(kFloat, false), at({columns, 1}));
  Var total = p.reduce(x, Compute::F32, sum(p));
  p.store(total, p.buffer(kFloat, true), along_rows ? at({1, 0}) : at({0, 1}));
  return p;
}

// x - sum(x), along rows.
Program centred(int64_t rows, int64_t columns) {
  Program p;
  p.axis(rows, false);
  p.axis(columns, true);
  expr::Graph& g = p.expressions;
  Var x = p.load(p.buffer(kFloat, false), at({columns, 1}));
  Var total = p.reduce(x, Compute::F32, sum(p));
  expr::Id less = g.binary(expr::BinaryOp::Sub, g.name("v0"), g.name("v1"));
  Var y = p.compute(Compute::F32, Compute::F32, less, {x, total});
  p.store(y, p.buffer(kFloat, true), at({columns, 1}));
  return p;
}

TEST(CudaSchedule, AccessesAreAsWideAsSizesAndStridesAllow) {
  auto width = [](int64_t columns, ScalarType dtype, int64_t step) {
    Program p = copy_of(4096, columns, dtype, step);
    return cuda_schedule(p, kSmall, /*aligned=*/true).width;
  };
  EXPECT_EQ(width(1024, kFloat, 1024), 4);
  EXPECT_EQ(width(1024, kDouble, 1024), 2);
  EXPECT_EQ(width(1024, kBFloat16, 1024), 8);
  EXPECT_EQ(width(1026, kFloat, 1026), 2);
  EXPECT_EQ(width(1023, kFloat, 1023), 1);
  EXPECT_EQ(width(1024, kFloat, 1025), 1);  // rows begin at odd places
}

TEST(CudaSchedule, FewElementsAreSpreadOverThreads) {
  Program few = copy_of(64, 64, kFloat, 64);
  EXPECT_EQ(cuda_schedule(few, kLarge, true).width, 1);
  EXPECT_EQ(cuda_schedule(few, kSmall, true).width, 4);
}

TEST(CudaSchedule, MemoryThatLiesAnyhowIsReadByElements) {
  Program p = copy_of(4096, 1024, kFloat, 1024);
  CudaSchedule s = cuda_schedule(p, kLarge, /*aligned=*/false);
  EXPECT_EQ(s.width, 1);
  EXPECT_EQ(s.alignment, 1);
  EXPECT_EQ(cuda_schedule(p, kLarge, true).alignment, 16);
}

TEST(CudaSchedule, ARowHasAWarpOrABlockByItsLength) {
  auto lanes = [](int64_t columns) {
    Program p = sum_of(100000, columns, /*along_rows=*/true);
    return cuda_schedule(p, kLarge, /*aligned=*/false).lanes;
  };
  EXPECT_EQ(lanes(5), 8);
  EXPECT_EQ(lanes(32), 32);
  EXPECT_EQ(lanes(256), 32);
  EXPECT_EQ(lanes(2048), 512);
  EXPECT_EQ(lanes(100000), 1024);
}

TEST(CudaSchedule, NeighboursHaveNeighbouringColumns) {
  Program p = sum_of(4096, 100000, /*along_rows=*/false);
  CudaSchedule s = cuda_schedule(p, kLarge, true);
  EXPECT_EQ(s.layout, CudaSchedule::kColumns);
  EXPECT_EQ(s.points_of_block(), 32);
  EXPECT_EQ(s.lanes, 8);
  EXPECT_EQ(s.splits, 1);
}

TEST(CudaSchedule, LittleSharedMemoryMakesColumnsBlocksSmall) {
  Program p = sum_of(4096, 100000, /*along_rows=*/false);
  CudaSchedule s = cuda_schedule(p, {132, 1024, 2048}, true);
  EXPECT_EQ(s.points_of_block(), 32);
  EXPECT_LE(s.block * 8, 1024);
}

TEST(CudaSchedule, BlocksShareWhatIsTooFewForTheDevice) {
  Program all = sum_of(2, 4'000'000, true), tall = sum_of(50000, 64, false);
  for (const Program& p : {all, tall}) {
    int64_t elements = p.extent(p.reduced()).plain();
    CudaSchedule s = cuda_schedule(p, kLarge, true);
    EXPECT_GT(s.splits, 60);
    EXPECT_GE(s.splits * s.part, elements);
    EXPECT_LT((s.splits - 1) * s.part, elements);
    EXPECT_EQ(s.part % (s.lanes * s.width), 0);
  }
  Program many = sum_of(100000, 512, true);
  EXPECT_EQ(cuda_schedule(many, kLarge, true).splits, 1);
}

TEST(CudaSchedule, ShortRowsStayInRegisters) {
  Program near = centred(4096, 1024), far = centred(4096, 1000000);
  CudaSchedule s = cuda_schedule(near, kLarge, true);
  EXPECT_GT(s.turns, 0);
  EXPECT_GE(s.turns * s.width * s.lanes, 1024);
  EXPECT_TRUE(s.nest.kept[0]);
  s = cuda_schedule(far, kLarge, true);
  EXPECT_EQ(s.turns, 0);
  EXPECT_FALSE(s.nest.kept[0]);
}

TEST(CudaSchedule, LargePlacesHave64Bits) {
  Program p = copy_of(70000, 70000, kFloat, 70000);
  EXPECT_TRUE(cuda_schedule(p, kLarge, true).wide);
  EXPECT_FALSE(cuda_schedule(copy_of(64, 64, kFloat, 64), kLarge, true).wide);
}

TEST(CudaLaunch, SaysGridBlockAndMemory) {
  Program p = centred(4096, 2048);
  std::vector<CudaCode> codes = cuda_codes(p, kLarge, "k");
  ASSERT_EQ(codes.size(), 2u);
  EXPECT_EQ(codes[0].alignment, 16);
  EXPECT_EQ(codes[1].alignment, 1);
  ASSERT_EQ(codes[1].launches.size(), 1u);
  const CudaLaunch& one = codes[1].launches[0];
  EXPECT_EQ(one.kernel, "k");
  EXPECT_EQ(one.blocks, 4096);
  EXPECT_EQ(one.splits, 1);
  EXPECT_EQ(one.threads, 512);
  EXPECT_EQ(one.shared_bytes, 512 / 32 * 4);
  EXPECT_EQ(codes[1].scratch_bytes, 0);
}

TEST(CudaLaunch, ASharedPointIsAKernelForEachPass) {
  Program p = sum_of(2, 4'000'000, /*along_rows=*/true);
  CudaCode code = cuda_codes(p, kLarge, "k").back();
  ASSERT_EQ(code.launches.size(), 2u);
  EXPECT_GT(code.launches[0].splits, 60);
  EXPECT_EQ(code.launches[1].splits, 1);
  EXPECT_GE(code.scratch_bytes, 2 * code.launches[0].splits * 4);
}

}  // namespace
}  // namespace taeda::compiler::loops
