// A store within one process, for its threads.
#pragma once

#include <taeda/csrc/distributed/table.h>

#include <condition_variable>
#include <mutex>

namespace taeda::distributed {

class HashStore : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired) override;
  bool check(const Keys& keys) override;
  void wait(const Keys& keys, Millis limit) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  void append(const std::string& key, const std::string& value) override;
  Keys multi_get(const Keys& keys) override;
  void multi_set(const Keys& keys, const Keys& values) override;
  bool has_extended_api() const override { return true; }
  void queue_push(const std::string& key, const std::string& value) override;
  std::string queue_pop(const std::string& key, bool block) override;
  int64_t queue_len(const std::string& key) override;
  std::shared_ptr<Store> clone() override;

 private:
  // Shared with clones.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    Table table;
  };
  using Lock = std::unique_lock<std::mutex>;
  template <class F>
  auto change(F&& f);
  template <class Ready>
  void await(Lock& lock, const Keys& keys, Millis limit, Ready&& ready);

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace taeda::distributed
