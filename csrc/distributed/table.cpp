#include <taeda/csrc/distributed/table.h>

#include <algorithm>
#include <charconv>

namespace taeda::distributed {

int64_t stored_number(const std::string& key, const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) {
    fail(Fault::Store, "add: the value of key '", key, "' is not a number");
  }
  return number;
}

int64_t stored_sum(const std::string& key, int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    fail(Fault::Store, "add: the sum at key '", key, "' is beyond 64 bits");
  }
  return sum;
}

int64_t Table::add(const std::string& key, int64_t amount) {
  const std::string* found = find(key);
  const int64_t before = found ? stored_number(key, *found) : 0;
  const int64_t sum = stored_sum(key, before, amount);
  values_[key] = std::to_string(sum);
  return sum;
}

std::string Table::compare_set(const std::string& key,
                               const std::string& expected,
                               const std::string& desired) {
  auto it = values_.find(key);
  if (it == values_.end()) {
    if (!expected.empty()) return expected;
    values_[key] = desired;
    return desired;
  }
  if (it->second == expected) it->second = desired;
  return it->second;
}

bool Table::has_all(const Keys& keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return values_.contains(key);
  });
}

std::optional<std::string> Table::pop(const std::string& key) {
  auto it = queues_.find(key);
  if (it == queues_.end()) return std::nullopt;
  std::string first = std::move(it->second.front());
  it->second.pop_front();
  if (it->second.empty()) queues_.erase(it);
  return first;
}

int64_t Table::length(const std::string& key) const {
  auto it = queues_.find(key);
  return it == queues_.end() ? 0 : static_cast<int64_t>(it->second.size());
}

}  // namespace taeda::distributed
