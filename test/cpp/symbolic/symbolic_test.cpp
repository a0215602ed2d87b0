#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/c10/util/check.h>

#include <gtest/gtest.h>

#include <random>

namespace taeda {
namespace {

using symbolic::Expressions;
using symbolic::Id;
using symbolic::Range;

// The same random program over expressions and over plain integers.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) {
      int64_t low = pick(0, 2);
      symbols_.push_back(e.symbol(str_cat("s", i), {low, Range::kHigh}));
      int64_t value = low + pick(0, 9);
      values[symbols_.back()] = value;
      ids_.push_back(symbols_.back());
      plain_.push_back(value);
    }
  }
  // Returns the number of the value that it made.
  size_t step() {
    size_t a = index(), b = index();
    int64_t x = plain_[a], y = plain_[b];
    switch (pick(0, 6)) {
      case 0:
        return put(e.add(ids_[a], ids_[b]), x + y);
      case 1:
        return put(e.sub(ids_[a], ids_[b]), x - y);
      case 2:
        if (std::abs(x) > 1000 || std::abs(y) > 1000) return a;
        return put(e.mul(ids_[a], ids_[b]), x * y);
      case 3:
        return divide(a, b, true);
      case 4:
        return divide(a, b, false);
      case 5:
        return put(e.min(ids_[a], ids_[b]), std::min(x, y));
      default:
        return put(e.max(ids_[a], ids_[b]), std::max(x, y));
    }
  }
  Id id(size_t i) const { return ids_[i]; }
  int64_t plain(size_t i) const { return plain_[i]; }
  size_t size() const { return ids_.size(); }

  Expressions e;
  std::unordered_map<Id, int64_t> values;

 private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  size_t index() { return static_cast<size_t>(pick(0, int64_t(size()) - 1)); }
  size_t put(Id id, int64_t value) {
    ids_.push_back(id);
    plain_.push_back(value);
    return size() - 1;
  }
  // By a constant, or by a value known to be positive.
  size_t divide(size_t a, size_t b, bool quotient) {
    Id by = ids_[b];
    int64_t y = plain_[b];
    if (e.range_of(by).low <= 0) {
      y = pick(1, 6);
      by = e.integer(y);
    }
    int64_t x = plain_[a];
    return quotient ? put(e.floor_div(ids_[a], by), symbolic::floor_div(x, y))
                    : put(e.mod(ids_[a], by), symbolic::floor_mod(x, y));
  }

  std::mt19937 random_;
  std::vector<Id> symbols_, ids_;
  std::vector<int64_t> plain_;
};

TEST(Symbolic, SimplifiedExpressionsKeepTheirValues) {
  int checked = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomProgram p(seed);
    for (int i = 0; i < 14; ++i) {
      size_t at = p.step();
      ASSERT_EQ(p.e.evaluate(p.id(at), p.values), p.plain(at))
          << p.e.text(p.id(at)) << ", seed " << seed;
      Range range = p.e.range_of(p.id(at));
      ASSERT_TRUE(range.contains(p.plain(at)))
          << p.e.text(p.id(at)) << ", seed " << seed;
      int64_t divisor = p.e.divisor_of(p.id(at));
      if (divisor != 0) {
        ASSERT_EQ(p.plain(at) % divisor, 0) << p.e.text(p.id(at));
      }
      ++checked;
    }
  }
  EXPECT_EQ(checked, 5600);
}

TEST(Symbolic, ConditionsKeepTheirTruth) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomProgram p(seed);
    for (int i = 0; i < 10; ++i) p.step();
    for (size_t a = 0; a + 1 < p.size(); ++a) {
      Id x = p.id(a), y = p.id(a + 1);
      int64_t u = p.plain(a), v = p.plain(a + 1);
      Id conditions[] = {p.e.equal(x, y), p.e.less(x, y), p.e.less_equal(x, y)};
      bool expected[] = {u == v, u < v, u <= v};
      for (int k = 0; k < 3; ++k) {
        EXPECT_EQ(p.e.evaluate(conditions[k], p.values) != 0, expected[k])
            << p.e.text(conditions[k]) << ", seed " << seed;
        Id opposite = p.e.logical_not(conditions[k]);
        EXPECT_EQ(p.e.evaluate(opposite, p.values) != 0, !expected[k])
            << p.e.text(opposite) << ", seed " << seed;
      }
    }
  }
}

TEST(Symbolic, NormalFormsMeet) {
  Expressions e;
  Id a = e.symbol("a", {2, Range::kHigh}), b = e.symbol("b", {2, Range::kHigh});
  auto two = e.integer(2), four = e.integer(4);
  EXPECT_EQ(e.mul(e.add(a, b), e.sub(a, b)), e.sub(e.mul(a, a), e.mul(b, b)));
  EXPECT_EQ(e.floor_div(e.mul(a, b), b), a);
  EXPECT_EQ(e.mod(e.scale(a, 4), four), e.integer(0));
  EXPECT_EQ(e.floor_div(e.floor_div(a, two), two), e.floor_div(a, four));
  EXPECT_EQ(e.floor_div(e.add(e.scale(a, 6), e.integer(4)), two),
            e.add(e.scale(a, 3), two));
  EXPECT_EQ(e.max(a, e.integer(1)), a);
  EXPECT_EQ(e.min(a, e.add(a, b)), a);
  EXPECT_EQ(e.equal(e.scale(a, 2), e.integer(3)), e.truth(false));
  EXPECT_EQ(e.less(a, two), e.truth(false));
  EXPECT_EQ(e.text(e.add(e.scale(a, 2), e.integer(-1))), "2*a - 1");
  EXPECT_EQ(e.text(e.less_equal(b, a)), "a >= b");
}

TEST(SymInt, PlainIntegersAreThemselves) {
  for (int64_t v : {int64_t{0},
                    int64_t{-1},
                    int64_t{1} << 61,
                    -(int64_t{1} << 62),
                    -(int64_t{1} << 62) - 1,
                    std::numeric_limits<int64_t>::min(),
                    std::numeric_limits<int64_t>::max()}) {
    SymInt s(v), copy = s;
    EXPECT_FALSE(s.is_symbolic());
    EXPECT_EQ(copy.plain(), v);
    EXPECT_TRUE(s == SymInt(v));
  }
  SymInt list[] = {1, 2, 3};
  EXPECT_TRUE(all_plain(list));
  EXPECT_EQ(as_plain(list)[2], 3);
  EXPECT_EQ((SymInt(-7) / 2).plain(), -4);
  EXPECT_EQ((SymInt(-7) % 2).plain(), 1);
}

TEST(ShapeEnv, DecisionsLeaveGuardsThatOtherSizesFailOrFit) {
  auto env = IntrusivePtr<ShapeEnv>::adopt(new ShapeEnv);
  SymInt n = env->create_size(8, "x.size(0)", DynamicSize::Duck);
  SymInt m = env->create_size(5, "x.size(1)", DynamicSize::Duck);
  EXPECT_TRUE(n % 2 == 0);
  EXPECT_TRUE(m < n);
  EXPECT_TRUE(n >= 2);  // known without a guard
  ASSERT_EQ(env->guards().size(), 2u);
  Id s0 = n.node()->id, s1 = m.node()->id;
  EXPECT_EQ(env->sources(s0), std::vector<std::string>{"x.size(0)"});
  // 0 and 1 were taken for constants.
  EXPECT_FALSE(env->fits({{s0, 10}, {s1, 1}}));
  EXPECT_TRUE(env->fits({{s0, 10}, {s1, 3}}));
  EXPECT_FALSE(env->fits({{s0, 9}, {s1, 3}}));
  EXPECT_FALSE(env->fits({{s0, 4}, {s1, 4}}));
}

TEST(ShapeEnv, EqualSizesBecomeOneSymbol) {
  auto env = IntrusivePtr<ShapeEnv>::adopt(new ShapeEnv);
  SymInt n = env->create_size(8, "a", DynamicSize::Marked);
  SymInt m = env->create_size(8, "b", DynamicSize::Marked);
  EXPECT_TRUE(n == m);
  EXPECT_EQ(env->guards().size(), 1u);
  EXPECT_EQ((n - m).plain(), 0);
  EXPECT_FALSE((n - m).is_symbolic());
  SymInt twice = n + m;
  EXPECT_EQ(twice.text(), "2*s0");
  EXPECT_EQ(n.guard(), 8);  // fixed from here on
  EXPECT_FALSE((m * 2).is_symbolic());
}

TEST(ShapeEnv, ZeroAndOneAreConstantsUnlessMarked) {
  auto env = IntrusivePtr<ShapeEnv>::adopt(new ShapeEnv);
  EXPECT_FALSE(env->create_size(1, "a", DynamicSize::Duck).is_symbolic());
  EXPECT_FALSE(env->create_size(7, "a", DynamicSize::Static).is_symbolic());
  EXPECT_TRUE(env->create_size(1, "a", DynamicSize::Marked).is_symbolic());
  SymInt a = env->create_size(4, "a", DynamicSize::Duck);
  SymInt b = env->create_size(4, "b", DynamicSize::Duck);
  EXPECT_EQ(a.text(), b.text());
  EXPECT_EQ(env->sources(a.node()->id), (std::vector<std::string>{"a", "b"}));
}

TEST(ShapeEnv, UnbackedSizesAnswerWhatTheirRangeKnows) {
  auto env = IntrusivePtr<ShapeEnv>::adopt(new ShapeEnv);
  SymInt u = env->create_unbacked();
  EXPECT_TRUE(u >= 0);
  EXPECT_FALSE(u < 0);
  try {
    bool one = u == 1;
    ADD_FAILURE() << one;
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("data-dependent expression Eq(u0, 1)"),
              std::string::npos)
        << error.message();
  }
  env->assert_true(sym_le(u, 16).node()->id, "too many");
  EXPECT_FALSE(u > 16);
  EXPECT_EQ(env->assertions().size(), 1u);
  EXPECT_THROW(env->assert_true(env->expressions().truth(false), "too many"),
               Error);
}

TEST(ShapeEnv, TracesDoNotMix) {
  auto one = IntrusivePtr<ShapeEnv>::adopt(new ShapeEnv);
  auto other = IntrusivePtr<ShapeEnv>::adopt(new ShapeEnv);
  SymInt a = one->create_size(4, "a", DynamicSize::Duck);
  SymInt b = other->create_size(5, "b", DynamicSize::Duck);
  EXPECT_THROW(a + b, Error);
}

TEST(SymBool, CombinesWithoutDeciding) {
  auto env = IntrusivePtr<ShapeEnv>::adopt(new ShapeEnv);
  SymInt n = env->create_size(8, "a", DynamicSize::Marked);
  SymBool both = sym_lt(n, 9) & !sym_eq(n, 3);
  EXPECT_TRUE(both.is_symbolic());
  EXPECT_TRUE(env->guards().empty());
  EXPECT_TRUE(both.guard());
  EXPECT_FALSE(env->guards().empty());
  EXPECT_EQ((sym_eq(n, 3) | SymBool(true)).is_symbolic(), false);
}

}  // namespace
}  // namespace taeda
