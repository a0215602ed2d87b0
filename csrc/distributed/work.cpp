#include <taeda/csrc/distributed/work.h>

namespace taeda::distributed {

void Work::complete(std::exception_ptr error, int source) {
  std::vector<std::function<void()>> callbacks;
  std::shared_ptr<void> keep;
  {
    std::lock_guard lock(mutex_);
    if (completed_) return;
    completed_ = true;
    error_ = std::move(error);
    source_ = source;
    callbacks.swap(callbacks_);
    keep.swap(keep_);
  }
  ended_.notify_all();
  for (auto& callback : callbacks) callback();
}

bool Work::is_completed() const {
  std::lock_guard lock(mutex_);
  return completed_;
}

std::exception_ptr Work::error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

int Work::source() const {
  std::lock_guard lock(mutex_);
  return source_;
}

void Work::wait(Millis limit) {
  std::unique_lock lock(mutex_);
  if (!ended_.wait_until(lock, after(limit), [&] { return completed_; })) {
    raise_late(limit);
  }
  if (error_) std::rethrow_exception(error_);
}

void Work::raise_late(Millis limit) {
  fail(Fault::Backend,
       "wait: the operation timed out: it did not complete within ",
       static_cast<int64_t>(limit.count()),
       " ms");
}

void Work::then(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!completed_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

}  // namespace taeda::distributed
