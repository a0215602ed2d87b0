#include <taeda/csrc/distributed/store.h>

#include <algorithm>

namespace taeda::distributed {

namespace {
thread_local TimePoint deadline = TimePoint::max();

[[noreturn]] void no_queues() {
  throw_error(ErrorKind::NotImplemented,
              "queue support is not implemented: this kind of store keeps "
              "values only; TCPStore and HashStore have queues");
}
}  // namespace

StoreDeadline::StoreDeadline(Millis limit) : before_(deadline) {
  deadline = std::min(deadline, after(limit));
}
StoreDeadline::~StoreDeadline() { deadline = before_; }
TimePoint StoreDeadline::current() { return deadline; }

void Store::queue_push(const std::string&, const std::string&) { no_queues(); }
std::string Store::queue_pop(const std::string&, bool) { no_queues(); }
int64_t Store::queue_len(const std::string&) { no_queues(); }

void wait_timed_out(const Keys& keys, Millis limit) {
  std::string names;
  for (const auto& key : keys) names += (names.empty() ? "" : ", ") + key;
  fail(Fault::Store,
       "wait timeout after ",
       static_cast<int64_t>(limit.count()),
       "ms, keys: ",
       names);
}

void check_pairs(const Keys& keys, const Keys& values) {
  TAEDA_CHECK(keys.size() == values.size(),
              "multi_set: expected one value for each key, got ",
              keys.size(),
              " keys and ",
              values.size(),
              " values");
}

}  // namespace taeda::distributed
