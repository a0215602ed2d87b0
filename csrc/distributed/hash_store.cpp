#include <taeda/csrc/distributed/hash_store.h>

namespace taeda::distributed {

template <class F>
auto HashStore::change(F&& f) {
  Lock lock(shared_->mutex);
  shared_->changed.notify_all();
  return f(shared_->table);
}

template <class Ready>
void HashStore::await(Lock& lock,
                      const Keys& keys,
                      Millis limit,
                      Ready&& ready) {
  if (!shared_->changed.wait_until(lock, after(limit), ready)) {
    wait_timed_out(keys, limit);
  }
}

void HashStore::set(const std::string& key, const std::string& value) {
  change([&](Table& t) { t.set(key, value); });
}

std::string HashStore::get(const std::string& key) {
  Lock lock(shared_->mutex);
  await(lock, {key}, timeout(), [&] { return shared_->table.find(key); });
  return *shared_->table.find(key);
}

int64_t HashStore::add(const std::string& key, int64_t amount) {
  return change([&](Table& t) { return t.add(key, amount); });
}

std::string HashStore::compare_set(const std::string& key,
                                   const std::string& expected,
                                   const std::string& desired) {
  return change(
      [&](Table& t) { return t.compare_set(key, expected, desired); });
}

bool HashStore::check(const Keys& keys) {
  Lock lock(shared_->mutex);
  return shared_->table.has_all(keys);
}

void HashStore::wait(const Keys& keys, Millis limit) {
  Lock lock(shared_->mutex);
  await(lock, keys, limit, [&] { return shared_->table.has_all(keys); });
}

bool HashStore::delete_key(const std::string& key) {
  return change([&](Table& t) { return t.erase(key); });
}

int64_t HashStore::num_keys() {
  Lock lock(shared_->mutex);
  return shared_->table.size();
}

void HashStore::append(const std::string& key, const std::string& value) {
  change([&](Table& t) { t.append(key, value); });
}

Keys HashStore::multi_get(const Keys& keys) {
  Lock lock(shared_->mutex);
  await(lock, keys, timeout(), [&] { return shared_->table.has_all(keys); });
  Keys values;
  for (const auto& key : keys) values.push_back(*shared_->table.find(key));
  return values;
}

void HashStore::multi_set(const Keys& keys, const Keys& values) {
  check_pairs(keys, values);
  change([&](Table& t) {
    for (size_t i = 0; i < keys.size(); ++i) t.set(keys[i], values[i]);
  });
}

void HashStore::queue_push(const std::string& key, const std::string& value) {
  change([&](Table& t) { t.push(key, value); });
}

std::string HashStore::queue_pop(const std::string& key, bool block) {
  Lock lock(shared_->mutex);
  auto ready = [&] { return shared_->table.length(key) > 0; };
  if (block) await(lock, {key}, timeout(), ready);
  auto found = shared_->table.pop(key);
  if (!found) fail(Fault::QueueEmpty, "queue_pop: queue '", key, "' is empty");
  return *found;
}

int64_t HashStore::queue_len(const std::string& key) {
  Lock lock(shared_->mutex);
  return shared_->table.length(key);
}

std::shared_ptr<Store> HashStore::clone() {
  auto other = std::make_shared<HashStore>();
  other->shared_ = shared_;
  other->set_timeout(timeout());
  return other;
}

}  // namespace taeda::distributed
