// The end of an operation, for those who wait for it.
#pragma once

#include <taeda/csrc/distributed/error.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace taeda::distributed {

class Work {
 public:
  // `keep` is what the operation reads and writes; it is released at its end.
  explicit Work(std::shared_ptr<void> keep = nullptr)
      : keep_(std::move(keep)) {}

  void complete(std::exception_ptr error = nullptr, int source = -1);
  bool is_completed() const;
  // Null as long as it runs and where it ended well.
  std::exception_ptr error() const;
  // The sender's rank in the group, of a message; -1 otherwise.
  int source() const;

  // Raises the operation's error; Fault::Backend where it is not complete
  // within the limit. The operation goes on then.
  void wait(Millis limit);
  [[noreturn]] static void raise_late(Millis limit);
  // Called at the end, by the thread that completes it, or here if it has
  // ended already.
  void then(std::function<void()> callback);

 private:
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable ended_;
  bool completed_ = false;
  std::exception_ptr error_;
  int source_ = -1;
  std::shared_ptr<void> keep_;
  std::vector<std::function<void()>> callbacks_;
};

}  // namespace taeda::distributed
