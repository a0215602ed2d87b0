// Rules by which dims of a group run together.
#include <taeda/csrc/compiler/loops/spaces.h>

#include <gtest/gtest.h>

namespace taeda::compiler::loops {
namespace {

TEST(Spaces, EqualAxesBecomeOne) {
  Spaces s;
  int a = s.axis(6), b = s.axis(6);
  s.set(0, {{a}});
  s.set(1, {{b}});
  ASSERT_TRUE(s.unify({a}, {b}));
  EXPECT_EQ(s.dims(0), s.dims(1));
  EXPECT_EQ(s.all().size(), 1u);
}

TEST(Spaces, ALongerAxisIsParted) {
  Spaces s;
  int whole = s.axis(24), outer = s.axis(4), inner = s.axis(6);
  s.set(0, {{whole}});
  s.set(1, {{outer}, {inner}});
  ASSERT_TRUE(s.unify({whole}, {outer, inner}));
  EXPECT_EQ(s.dims(0)[0], (Spaces::Axes{s.dims(1)[0][0], s.dims(1)[1][0]}));
}

TEST(Spaces, PartsThatDoNotFitEndTheGroup) {
  Spaces s;
  int a = s.axis(6), b = s.axis(4), c = s.axis(4), d = s.axis(6);
  EXPECT_FALSE(s.unify({a, b}, {c, d}));  // [6, 4] seen as [4, 6]
}

TEST(Spaces, ADiagonalIsNotValid) {
  Spaces s;
  int a = s.axis(5), b = s.axis(5);
  s.set(0, {{a}, {b}});
  EXPECT_TRUE(s.valid());
  ASSERT_TRUE(s.unify({a}, {b}));  // x + x.t()
  EXPECT_FALSE(s.valid());
}

TEST(Spaces, AllReductionsReduceTheSame) {
  Spaces s;
  int a = s.axis(5), b = s.axis(6);
  EXPECT_TRUE(s.reduce({a}));
  EXPECT_TRUE(s.reduce({a}));
  EXPECT_FALSE(s.reduce({b}));
  EXPECT_FALSE(s.reduce({a, b}));
}

}  // namespace
}  // namespace taeda::compiler::loops
