#include <taeda/c10/util/intrusive_ptr.h>
#include <taeda/c10/util/small_vector.h>

#include "../errors.h"

#include <string>
#include <thread>
#include <vector>

namespace taeda {
namespace {

using Words = SmallVector<std::string, 2>;

// Longer than what std::string keeps inside itself, so that leaks show.
std::string word(int i) { return std::string(40, 'a') + std::to_string(i); }

Words words(int n) {
  Words all;
  for (int i = 0; i < n; ++i) all.push_back(word(i));
  return all;
}

TEST(SmallVector, GrowsOutOfItsInlineSpace) {
  Words v = words(9);
  ASSERT_EQ(v.size(), 9u);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(v[i], word(i));
  v.resize(3);
  v.push_back(v.front());
  EXPECT_EQ(v.back(), word(0));
}

TEST(SmallVector, CopiesAndMovesInlineAndHeap) {
  for (int n : {0, 1, 2, 3, 8}) {
    Words a = words(n), copy = a, moved = std::move(a);
    EXPECT_TRUE(a.empty());
    EXPECT_EQ(copy, moved);
    a = copy;
    EXPECT_EQ(a, moved);
    moved = words(5);
    moved = std::move(a);
    EXPECT_EQ(moved, copy);
    Words& self = moved;
    moved = self;
    EXPECT_EQ(moved, copy);
  }
}

TEST(SmallVector, InsertsAndErases) {
  Words v = words(3);
  v.insert(v.begin() + 1, std::string(50, 'x'));
  EXPECT_EQ(v[1], std::string(50, 'x'));
  EXPECT_EQ(v[3], word(2));
  v.erase(v.begin());
  ASSERT_EQ(v.size(), 3u);
  EXPECT_EQ(v[0], std::string(50, 'x'));
}

TEST(ArrayRef, SlicesAndCompares) {
  std::vector<int64_t> list{1, 2, 3, 4};
  IntArrayRef all(list);
  EXPECT_EQ(all.slice(1, 2), IntArrayRef({2, 3}));
  EXPECT_EQ(all.slice(3), IntArrayRef(list[3]));
  EXPECT_FALSE(all == all.slice(1));
  EXPECT_EQ(all.vec(), list);
}

struct Counted : IntrusiveTarget {
  explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
  ~Counted() override { --*alive_; }
  void release_resources() override { resources.clear(); }
  std::vector<int> resources = std::vector<int>(100);
  int* alive_;
};

TEST(IntrusivePtr, LastStrongReferenceDeletes) {
  int alive = 0;
  {
    auto a = make_intrusive<Counted>(&alive);
    IntrusivePtr<IntrusiveTarget> base = a;
    auto moved = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_EQ(moved->use_count(), 2u);
    base.reset();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(IntrusivePtr, WeakReferencesKeepTheShellOnly) {
  int alive = 0;
  auto a = make_intrusive<Counted>(&alive);
  WeakPtr<Counted> weak(a.get());
  EXPECT_EQ(weak.lock().get(), a.get());
  a.reset();
  EXPECT_EQ(alive, 1);
  EXPECT_FALSE(weak.lock());
  weak = {};
  EXPECT_EQ(alive, 0);
}

TEST(IntrusivePtr, CountsAreSharedBetweenThreads) {
  int alive = 0;
  auto shared = make_intrusive<Counted>(&alive);
  WeakPtr<Counted> weak(shared.get());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([mine = shared, weak] {
      for (int k = 0; k < 1000; ++k) {
        auto copy = mine;
        auto locked = weak.lock();
        EXPECT_EQ(copy, locked);
      }
    });
  }
  shared.reset();
  for (auto& t : threads) t.join();
  threads.clear();
  EXPECT_FALSE(weak.lock());
}

TEST(Check, MessagesAreBuiltFromTheirParts) {
  std::vector<int64_t> sizes{2, 3};
  expect_throws(ErrorKind::Index, "f: 3 of [2, 3] is 0.5, not true", [&] {
    TAEDA_CHECK_AS(Index,
                   false,
                   "f: ",
                   3,
                   " of ",
                   IntArrayRef(sizes),
                   " is ",
                   0.5,
                   ", not ",
                   true);
  });
  EXPECT_EQ(str_cat(1e300, ' ', 4.0, ' ', uint64_t{1} << 63),
            "1e+300 4 9223372036854775808");
  int built = 0;
  auto text = [&] { return ++built, "text"; };
  TAEDA_CHECK(true, text());
  EXPECT_EQ(built, 0);
}

TEST(Check, OurOwnBugsSayWhere) {
  expect_throws(ErrorKind::Internal, "containers_test.cpp", [] {
    TAEDA_INTERNAL_ASSERT(1 == 2, "impossible");
  });
}

}  // namespace
}  // namespace taeda
