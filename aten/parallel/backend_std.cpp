// A plain std::thread pool, for builds under the thread sanitizer.
#ifdef TAEDA_PARALLEL_STD

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <taeda/aten/parallel/backend.h>

namespace taeda::detail {
namespace {

// Workers sleep until `generation_` moves, then run the job of their index.
// One region at a time: run_mutex_ is held for its whole length, and a second
// caller is told so instead of waiting.
class Pool {
 public:
  ~Pool() { stop(); }

  bool try_run(int count, JobFn fn) {
    const std::unique_lock<std::mutex> running(run_mutex_, std::try_to_lock);
    if (!running.owns_lock()) {
      return false;
    }
    grow(count - 1);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      fn_ = fn;
      jobs_ = count;
      pending_ = static_cast<int>(workers_.size());
      ++generation_;
    }
    wake_.notify_all();
    fn.call(fn.context, 0);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
    return true;
  }

  void before_fork() {
    run_mutex_.lock();
    stop();
  }

  void after_fork() { run_mutex_.unlock(); }

 private:
  void grow(int count) {
    while (static_cast<int>(workers_.size()) < count) {
      const int index = static_cast<int>(workers_.size()) + 1;
      // Read here, before the next region can begin: a worker that started
      // late would otherwise miss that region and never count down.
      workers_.emplace_back(
          [this, index, seen = generation_] { work(index, seen); });
    }
  }

  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) {
      worker.join();
    }
    workers_.clear();
    stopping_ = false;
  }

  void work(int index, int64_t seen) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) {
        return;
      }
      seen = generation_;
      if (index < jobs_) {
        const JobFn fn = fn_;
        lock.unlock();
        fn.call(fn.context, index);
        lock.lock();
      }
      if (--pending_ == 0) {
        done_.notify_one();
      }
    }
  }

  std::mutex run_mutex_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> workers_;
  JobFn fn_{};
  int jobs_ = 0;
  int pending_ = 0;
  int64_t generation_ = 0;
  bool stopping_ = false;
};

Pool& pool() {
  static Pool instance;
  return instance;
}

// fork() may be called by a part of a region; its pool cannot be stopped then.
thread_local bool stopped_for_fork_ = false;

}  // namespace

void backend_run(int count, JobFn fn) {
  if (pool().try_run(count, fn)) {
    return;
  }
  for (int job = 0; job < count; ++job) {
    fn.call(fn.context, job);
  }
}

void backend_before_fork() {
  if (!in_parallel_region()) {
    pool().before_fork();
    stopped_for_fork_ = true;
  }
}

void backend_after_fork() {
  if (stopped_for_fork_) {
    stopped_for_fork_ = false;
    pool().after_fork();
  }
}

}  // namespace taeda::detail

#endif  // TAEDA_PARALLEL_STD
