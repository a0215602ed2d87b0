// The values themselves: what a HashStore has and a TCP server serves.
#pragma once

#include <taeda/csrc/distributed/store.h>

#include <deque>
#include <optional>
#include <unordered_map>

namespace taeda::distributed {

// Not locked: its owner does that, or has one thread.
class Table {
 public:
  void set(const std::string& key, std::string value) {
    values_[key] = std::move(value);
  }
  const std::string* find(const std::string& key) const {
    auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
  }
  int64_t add(const std::string& key, int64_t amount);
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired);
  void append(const std::string& key, const std::string& value) {
    values_[key] += value;
  }
  bool erase(const std::string& key) { return values_.erase(key) != 0; }
  bool has_all(const Keys& keys) const;
  int64_t size() const { return static_cast<int64_t>(values_.size()); }

  void push(const std::string& key, std::string value) {
    queues_[key].push_back(std::move(value));
  }
  std::optional<std::string> pop(const std::string& key);
  int64_t length(const std::string& key) const;

 private:
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::deque<std::string>> queues_;
};

// The number that a stored text is; Fault::Store for other texts.
int64_t stored_number(const std::string& key, const std::string& text);
// Their sum; Fault::Store where 64 bits do not hold it.
int64_t stored_sum(const std::string& key, int64_t a, int64_t b);

}  // namespace taeda::distributed
