#include <taeda/csrc/distributed/hash_store.h>
#include <taeda/csrc/distributed/tcp_store.h>

#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace taeda::distributed {
namespace {

constexpr int kClients = 8;
constexpr int kRounds = 40;

// Runs them side by side, each with its number.
void in_threads(int count, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(f, i);
  for (std::thread& t : threads) t.join();
}

// Each client sets values that the next one waits for, counts, appends to a
// common text and moves values through a queue.
void use_from_all_sides(Store& root) {
  std::vector<std::shared_ptr<Store>> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(root.clone());
  in_threads(kClients, [&](int me) {
    Store& store = *clients[static_cast<size_t>(me)];
    const int next = (me + 1) % kClients;
    for (int round = 0; round < kRounds; ++round) {
      auto key = [round](int client) {
        return str_cat("key/", round, "/", client);
      };
      store.set(key(me), str_cat(me));
      EXPECT_EQ(store.get(key(next)), str_cat(next));
      store.wait({key(me), key(next)}, std::chrono::seconds(60));
      EXPECT_TRUE(store.check({key(me)}));
      store.add("count", 1);
      store.append("text", "x");
      store.queue_push("queue", str_cat(me));
      store.queue_pop("queue", /*block=*/true);
      store.compare_set("last", "", str_cat(me));
    }
  });
  const std::string rounds = str_cat(kClients * kRounds);
  EXPECT_EQ(root.get("count"), rounds);
  EXPECT_EQ(root.get("text").size(), size_t{kClients * kRounds});
  EXPECT_EQ(root.queue_len("queue"), 0);
  EXPECT_EQ(root.num_keys(), kClients * kRounds + 3);
}

TEST(Stores, HashStoreServesManyThreads) {
  HashStore store;
  use_from_all_sides(store);
}

TEST(Stores, TCPStoreServesManyConnections) {
  TCPStoreOptions options;
  options.is_server = true;
  TCPStore store("127.0.0.1", options);
  use_from_all_sides(store);
}

// One connection, whose questions come from several threads.
TEST(Stores, OneConnectionServesManyThreads) {
  TCPStoreOptions options;
  options.is_server = true;
  TCPStore store("127.0.0.1", options);
  in_threads(kClients, [&](int me) {
    for (int round = 0; round < kRounds; ++round) {
      store.set(str_cat(me), str_cat(round));
      EXPECT_EQ(store.get(str_cat(me)), str_cat(round));
      store.add("count", 1);
    }
  });
  EXPECT_EQ(store.get("count"), str_cat(kClients * kRounds));
}

TEST(Stores, ClientsComeAndGoWhileOthersWait) {
  TCPStoreOptions options;
  options.is_server = true;
  TCPStore store("127.0.0.1", options);
  in_threads(kClients, [&](int me) {
    for (int round = 0; round < 10; ++round) {
      auto client = store.clone();
      if (me == 0) {
        client->set(str_cat("go/", round), "1");
      } else {
        client->wait({str_cat("go/", round)}, std::chrono::seconds(60));
      }
    }
  });
}

}  // namespace
}  // namespace taeda::distributed
