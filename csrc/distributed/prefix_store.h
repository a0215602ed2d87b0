// Another store's keys below a prefix.
#pragma once

#include <taeda/csrc/distributed/store.h>

namespace taeda::distributed {

class PrefixStore : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> inner);

  void set(const std::string& key, const std::string& value) override {
    inner_->set(full(key), value);
  }
  std::string get(const std::string& key) override {
    return inner_->get(full(key));
  }
  int64_t add(const std::string& key, int64_t amount) override {
    return inner_->add(full(key), amount);
  }
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired) override {
    return inner_->compare_set(full(key), expected, desired);
  }
  bool check(const Keys& keys) override { return inner_->check(full(keys)); }
  void wait(const Keys& keys, Millis limit) override {
    inner_->wait(full(keys), limit);
  }
  bool delete_key(const std::string& key) override {
    return inner_->delete_key(full(key));
  }
  // Of the store below: keys of other prefixes count too.
  int64_t num_keys() override { return inner_->num_keys(); }
  void append(const std::string& key, const std::string& value) override {
    inner_->append(full(key), value);
  }
  Keys multi_get(const Keys& keys) override {
    return inner_->multi_get(full(keys));
  }
  void multi_set(const Keys& keys, const Keys& values) override {
    inner_->multi_set(full(keys), values);
  }
  bool has_extended_api() const override { return inner_->has_extended_api(); }
  void queue_push(const std::string& key, const std::string& value) override {
    inner_->queue_push(full(key), value);
  }
  std::string queue_pop(const std::string& key, bool block) override {
    return inner_->queue_pop(full(key), block);
  }
  int64_t queue_len(const std::string& key) override {
    return inner_->queue_len(full(key));
  }
  std::shared_ptr<Store> clone() override {
    return std::make_shared<PrefixStore>(prefix_, inner_->clone());
  }
  Millis timeout() const override { return inner_->timeout(); }
  void set_timeout(Millis limit) override { inner_->set_timeout(limit); }

  const std::shared_ptr<Store>& inner() const { return inner_; }

 private:
  std::string full(const std::string& key) const { return prefix_ + "/" + key; }
  Keys full(const Keys& keys) const;

  std::string prefix_;
  std::shared_ptr<Store> inner_;
};

}  // namespace taeda::distributed
