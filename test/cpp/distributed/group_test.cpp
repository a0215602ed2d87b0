#include <taeda/csrc/distributed/group.h>
#include <taeda/csrc/distributed/hash_store.h>

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace taeda::distributed {
namespace {

constexpr int kRanks = 3;
constexpr Millis kLimit = std::chrono::seconds(60);

// Each rank is a thread with a group of its own over memory that all share.
template <class F>
void on_ranks(const char* name, F&& f) {
  auto store = std::make_shared<HashStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Group group({rank, kRanks, name}, store, kLimit, Route::SharedMemory);
      f(group, rank);
      group.shut_down();
    });
  }
  for (std::thread& t : threads) t.join();
}

std::shared_ptr<Work> sum(Group& group, std::vector<float>& data, bool async) {
  Head head;
  head.kind = Kind::AllReduce;
  head.dtype = kFloat;
  head.bytes = data.size() * sizeof(float);
  Group::Options options;
  options.async = async;
  return group.run(
      head,
      [&data](Channel& channel, const Call& call) {
        channel.all_reduce(call, Reduction{}, data.data(), data.size());
      },
      options);
}

Span bytes_of(std::vector<float>& data) {
  return {reinterpret_cast<char*>(data.data()), data.size() * sizeof(float)};
}

TEST(Groups, SumsOfManySizesAddUp) {
  on_ranks("sums", [](Group& group, int rank) {
    for (size_t n : {1, 7, 1000, 70'000}) {
      std::vector<float> data(n);
      std::iota(data.begin(), data.end(), static_cast<float>(rank));
      sum(group, data, /*async=*/false);
      EXPECT_EQ(data[0], 3.0f);  // 0 + 1 + 2
      EXPECT_EQ(data[n - 1], 3.0f * static_cast<float>(n - 1) + 3.0f);
    }
  });
}

// What DDP's backward does: buckets are summed behind the caller's back while
// it goes on, and all are waited for at the end.
TEST(Groups, BucketsAreSummedBehindTheCaller) {
  on_ranks("buckets", [](Group& group, int rank) {
    for (int step = 0; step < 20; ++step) {
      std::vector<std::vector<float>> buckets;
      for (size_t b = 0; b < 6; ++b) {
        buckets.emplace_back(500 * (b + 1), static_cast<float>(rank + step));
      }
      std::vector<std::shared_ptr<Work>> works;
      for (auto& bucket : buckets) works.push_back(sum(group, bucket, true));
      for (auto& work : works) group.await(*work, kLimit);
      for (const auto& bucket : buckets) {
        EXPECT_EQ(bucket.back(), static_cast<float>(3 + 3 * step));
      }
    }
  });
}

TEST(Groups, MessagesGoRoundWhileCollectivesRun) {
  on_ranks("ring", [](Group& group, int rank) {
    const int next = (rank + 1) % kRanks;
    const int before = (rank + kRanks - 1) % kRanks;
    for (int round = 0; round < 20; ++round) {
      std::vector<float> mine(3000, static_cast<float>(rank)), theirs(3000);
      std::vector<float> total(100, 1.0f);
      auto summed = sum(group, total, /*async=*/true);
      auto tag = static_cast<uint64_t>(round);
      auto sent = group.send(bytes_of(mine), next, tag, {});
      auto got = group.receive(bytes_of(theirs), before, tag, {});
      group.await(*got, kLimit);
      group.await(*sent, kLimit);
      group.await(*summed, kLimit);
      EXPECT_EQ(theirs.back(), static_cast<float>(before));
      EXPECT_EQ(total.back(), static_cast<float>(kRanks));
    }
  });
}

}  // namespace
}  // namespace taeda::distributed
