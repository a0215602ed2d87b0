// Programs as tiles give what their expressions mean.
#include <taeda/aten/expr/evaluate.h>
#include <taeda/c10/util/bfloat16.h>
#include <taeda/csrc/compiler/loops/tiles.h>

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace taeda::compiler::loops {
namespace {

constexpr size_t kManySteps = 1000;

Place at(std::vector<SymInt> strides) { return {0, std::move(strides)}; }

void run(const Program& p, std::vector<void*> buffers, int64_t points) {
  auto tiles = TileProgram::make(p, kManySteps);
  ASSERT_NE(tiles, nullptr);
  tiles->run(buffers.data(), 0, points);
}

int64_t points_of(const Program& p) {
  return schedule(p).outer_count(p).plain();
}

// y[i] = value(x[i]) over one axis.
template <class T, class U, class F>
std::vector<U> mapped(const std::vector<T>& x,
                      ScalarType from,
                      ScalarType to,
                      F&& value) {
  Program p;
  p.axis(static_cast<int64_t>(x.size()), false);
  int in = p.buffer(from, false), out = p.buffer(to, true);
  Var v = value(p, p.load(in, at({1})));
  p.store(p.convert(v, compute_of(to)), out, at({1}));
  std::vector<U> y(x.size());
  run(p, {const_cast<T*>(x.data()), y.data()}, points_of(p));
  return y;
}

Var square(Program& p, Var x) {
  expr::Graph& g = p.expressions;
  expr::Id name = g.name(Program::name_of(x));
  Compute t = p[x].type;
  return p.compute(t, t, g.binary(expr::BinaryOp::Mul, name, name), {x});
}

// Arguments where most functions have a finite value.
double argument(int which, int i) { return 0.3 + 0.17 * which + 0.011 * i; }

TEST(Tiles, EveryFunctionOfRealNumbersGivesItsValue) {
  int count = 0;
  for (int f = 0; f < expr::kNumFunctions; ++f) {
    const expr::Function& function = expr::kFunctions[f];
    if (function.on_reals == nullptr) continue;
    ++count;
    constexpr int n = 40;
    Program p;
    p.axis(n, false);
    std::vector<std::vector<double>> x(function.arity, std::vector<double>(n));
    std::vector<void*> buffers;
    std::vector<Var> operands;
    expr::Id names[expr::kMaxArity] = {};
    for (int k = 0; k < function.arity; ++k) {
      for (int i = 0; i < n; ++i) x[k][i] = argument(k, i);
      buffers.push_back(x[k].data());
      operands.push_back(p.load(p.buffer(kDouble, false), at({1})));
      names[k] = p.expressions.name(Program::name_of(operands[k]));
    }
    expr::Id call = function.arity == 1 ? p.expressions.call(f, {names[0]})
                    : function.arity == 2
                        ? p.expressions.call(f, {names[0], names[1]})
                        : p.expressions.call(f, {names[0], names[1], names[2]});
    Var v = p.compute(Compute::F64, Compute::F64, call, operands);
    p.store(v, p.buffer(kDouble, true), at({1}));
    std::vector<double> y(n);
    buffers.push_back(y.data());
    run(p, buffers, points_of(p));
    for (int i = 0; i < n; ++i) {
      std::unordered_map<std::string, expr::Value> values;
      for (int k = 0; k < function.arity; ++k) {
        values[Program::name_of(operands[k])] = expr::Value::of(x[k][i]);
      }
      double want = evaluate(p.expressions, call, values, expr::Kind::Float)
                        .to(expr::Kind::Float)
                        .number.real();
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(y[i])) << function.name << " " << i;
      } else {
        EXPECT_NEAR(y[i], want, 1e-11 * std::fabs(want) + 1e-300)
            << function.name << " " << i;
      }
    }
  }
  EXPECT_GT(count, 50);
}

TEST(Tiles, SixteenBitFloatsAreRoundedOnce) {
  std::vector<BFloat16> x;
  for (int i = 0; i < 1300; ++i) x.push_back(BFloat16(1.0f + 0.01f * i));
  auto y = mapped<BFloat16, BFloat16>(
      x, kBFloat16, kBFloat16, [](Program& p, Var v) {
        return square(p, square(p, v));
      });
  for (size_t i = 0; i < x.size(); ++i) {
    float a = static_cast<float>(x[i]), b = a * a;
    EXPECT_EQ(static_cast<float>(y[i]), static_cast<float>(BFloat16(b * b)));
  }
  auto z = mapped<BFloat16, float>(x, kBFloat16, kFloat, [](Program& p, Var v) {
    return square(p, p.round(square(p, v), kBFloat16));
  });
  for (size_t i = 0; i < x.size(); ++i) {
    float a = static_cast<float>(x[i]);
    auto b = static_cast<float>(BFloat16(a * a));
    EXPECT_EQ(z[i], b * b);
  }
}

TEST(Tiles, SmallIntegersWrap) {
  std::vector<int8_t> x(300);
  std::iota(x.begin(), x.end(), int8_t{-128});
  auto y = mapped<int8_t, int8_t>(x, kChar, kChar, square);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i], static_cast<int8_t>(x[i] * x[i])) << int{x[i]};
  }
}

TEST(Tiles, TruthValuesChooseAndAreReadAsBytes) {
  std::vector<uint8_t> x = {0, 1, 2, 255, 0, 1};
  auto y = mapped<uint8_t, float>(x, kBool, kFloat, [](Program& p, Var v) {
    expr::Graph& g = p.expressions;
    expr::Id choice = g.cond(g.name(Program::name_of(v)),
                             g.literal(expr::Literal::of(2.5)),
                             g.literal(expr::Literal::of(-1.0)));
    return p.compute(Compute::F32, Compute::F32, choice, {v});
  });
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], x[i] ? 2.5f : -1.0f);
}

TEST(Tiles, StridesOffsetsIndicesAndGathers) {
  // out[i][j] = x[j][i] squared + table[2 + j], x of 700 columns of 3.
  constexpr int64_t rows = 3, columns = 700;
  std::vector<float> x(rows * columns), table(columns + 2), y(rows * columns);
  std::iota(x.begin(), x.end(), 0.0f);
  std::iota(table.begin(), table.end(), 100.0f);
  Program p;
  p.axis(rows, false);
  p.axis(columns, false);
  int in = p.buffer(kFloat, false), looked = p.buffer(kFloat, false);
  Var v = square(p, p.load(in, at({1, rows})));
  Var found = p.gather(looked, 2, p.index(1));
  expr::Graph& g = p.expressions;
  expr::Id sum = g.binary(expr::BinaryOp::Add,
                          g.name(Program::name_of(v)),
                          g.name(Program::name_of(found)));
  Var total = p.compute(Compute::F32, Compute::F32, sum, {v, found});
  p.store(total, p.buffer(kFloat, true), at({columns, 1}));
  run(p, {x.data(), table.data(), y.data()}, points_of(p));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float a = x[j * rows + i];
      EXPECT_EQ(y[i * columns + j], a * a + table[2 + j]) << i << " " << j;
    }
  }
}

TEST(Tiles, ResultsMayLieInAnOperandsMemory) {
  std::vector<double> x(5000), square_of(5000), copy(5000);
  std::iota(x.begin(), x.end(), 1.0);
  std::vector<double> before = x;
  Program p;
  p.axis(5000, false);
  Var v = p.load(p.buffer(kDouble, false), at({1}));
  Var w = square(p, v);
  p.store(w, p.buffer(kDouble, true), at({1}));
  p.store(v, p.buffer(kDouble, true), at({1}));
  p.store(w, p.buffer(kDouble, true), at({1}));
  // The first result overwrites what the second one is.
  run(p, {x.data(), x.data(), copy.data(), square_of.data()}, points_of(p));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(copy[i], before[i]);
    EXPECT_EQ(x[i], before[i] * before[i]);
    EXPECT_EQ(square_of[i], x[i]);
  }
}

TEST(Tiles, NothingIsMadeOfReductionsNorOfTooManySteps) {
  Program p;
  p.axis(8, false);
  Var v = p.load(p.buffer(kFloat, false), at({1}));
  p.store(square(p, square(p, v)), p.buffer(kFloat, true), at({1}));
  EXPECT_EQ(TileProgram::make(p, 1), nullptr);
  EXPECT_NE(TileProgram::make(p, 2), nullptr);
  Program q;
  q.axis(8, true);
  expr::Graph& g = q.expressions;
  expr::Id both = g.binary(expr::BinaryOp::Add, g.name("a"), g.name("b"));
  Var w = q.load(q.buffer(kFloat, false), at({1}));
  Var total = q.reduce(w, Compute::F32, {g.integer(0), both, g.name("acc")});
  q.store(total, q.buffer(kFloat, true), at({0}));
  EXPECT_EQ(TileProgram::make(q, kManySteps), nullptr);
}

}  // namespace
}  // namespace taeda::compiler::loops
