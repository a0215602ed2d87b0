// Keys and values that the ranks of a job share while they meet.
#pragma once

#include <taeda/csrc/distributed/error.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace taeda::distributed {

using Keys = std::vector<std::string>;

// Every function may be called by several threads. What waits raises
// Fault::Store after its limit.
class Store {
 public:
  static constexpr Millis kDefaultTimeout = std::chrono::seconds(300);

  explicit Store(Millis limit = kDefaultTimeout) : limit_(limit) {}
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits for the key.
  virtual std::string get(const std::string& key) = 0;
  // The sum with the decimal number that is there; nothing counts as zero.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  // Sets where the value is `expected`, or where there is none and `expected`
  // is empty. Returns what is there afterwards, `expected` if nothing is.
  virtual std::string compare_set(const std::string& key,
                                  const std::string& expected,
                                  const std::string& desired) = 0;
  virtual bool check(const Keys& keys) = 0;
  virtual void wait(const Keys& keys, Millis limit) = 0;
  virtual bool delete_key(const std::string& key) = 0;
  virtual int64_t num_keys() = 0;

  virtual void append(const std::string& key, const std::string& value) = 0;
  virtual Keys multi_get(const Keys& keys) = 0;
  virtual void multi_set(const Keys& keys, const Keys& values) = 0;
  // Whether the three above are one message each and not composed.
  virtual bool has_extended_api() const = 0;

  // Queues are apart from values: a key of a queue has no value.
  virtual void queue_push(const std::string& key, const std::string& value);
  virtual std::string queue_pop(const std::string& key, bool block);
  virtual int64_t queue_len(const std::string& key);

  // A store with a connection of its own to the same values.
  virtual std::shared_ptr<Store> clone() = 0;

  virtual Millis timeout() const { return limit_.load(); }
  virtual void set_timeout(Millis limit) { limit_ = limit; }

 private:
  std::atomic<Millis> limit_;
};

// While it lives, what this thread asks servers ends by its time as well: a
// store's own limit is that of its job, and a group's may be shorter.
class StoreDeadline {
 public:
  explicit StoreDeadline(Millis limit);
  ~StoreDeadline();
  StoreDeadline(const StoreDeadline&) = delete;
  StoreDeadline& operator=(const StoreDeadline&) = delete;

  static TimePoint current();

 private:
  TimePoint before_;
};

[[noreturn]] void wait_timed_out(const Keys& keys, Millis limit);
void check_pairs(const Keys& keys, const Keys& values);

}  // namespace taeda::distributed
