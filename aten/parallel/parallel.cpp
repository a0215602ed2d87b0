#include <taeda/aten/parallel/parallel.h>

#include <pthread.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>

#include <taeda/aten/parallel/backend.h>

namespace taeda {
namespace {

// initial-exec: a plain load instead of a call to __tls_get_addr, for these are
// read on every operator call. Eight bytes of the static reserve.
#define TAEDA_FAST_TLS __attribute__((tls_model("initial-exec")))
TAEDA_FAST_TLS thread_local bool in_region_ = false;
TAEDA_FAST_TLS thread_local int thread_num_ = 0;

// 0: not decided yet.
std::atomic<int> num_threads_{0};
std::atomic<int> num_interop_threads_{0};

class RegionGuard {
 public:
  explicit RegionGuard(int thread_num)
      : was_in_region_(in_region_), previous_(thread_num_) {
    in_region_ = true;
    thread_num_ = thread_num;
  }
  ~RegionGuard() {
    in_region_ = was_in_region_;
    thread_num_ = previous_;
  }
  RegionGuard(const RegionGuard&) = delete;
  RegionGuard& operator=(const RegionGuard&) = delete;

 private:
  bool was_in_region_;
  int previous_;
};

// Note [Floating-point environment of helpers]
// A thread starts with the rounding mode that its creator had at that moment,
// and OpenMP's threads may be created by another library (PyTorch shares
// libgomp with us) in the middle of its own arithmetic. Vectorised exp rounds
// its argument in that mode: a helper with a directed one was off by 1e-13,
// seen as a float64 sum of 3 million that was off by 4e-7 once in some dozens
// of runs. So a part computes in the mode of the thread that waits for it.
class FloatEnvironment {
 public:
#if defined(__SSE__)
  static unsigned current() { return _mm_getcsr() & kControl; }
  explicit FloatEnvironment(unsigned wanted)
      : before_(_mm_getcsr()), changed_((before_ & kControl) != wanted) {
    if (changed_) [[unlikely]] {
      _mm_setcsr((before_ & ~kControl) | wanted);
    }
  }
  ~FloatEnvironment() {
    if (changed_) [[unlikely]] {
      _mm_setcsr(before_);
    }
  }
#else
  static unsigned current() { return 0; }
  explicit FloatEnvironment(unsigned) {}
#endif
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

#if defined(__SSE__)
 private:
  // Rounding, flushing of denormals, masks: all but what has happened so far.
  static constexpr unsigned kControl = 0xffc0;
  unsigned before_;
  bool changed_;
#endif
};

// Keeps the first exception of a region until its join.
class FirstError {
 public:
  void capture() noexcept {
    if (!taken_.test_and_set()) {
      error_ = std::current_exception();
    }
  }
  void rethrow() {
    if (error_) {
      std::rethrow_exception(error_);
    }
  }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
  std::exception_ptr error_;
};

void check_count(const char* name, int count) {
  if (count < 1) {
    throw std::runtime_error(std::string(name) +
                             ": expected a positive number of threads, got " +
                             std::to_string(count));
  }
}

// Registered when the library is loaded, before any thread can be running.
[[maybe_unused]] const int fork_handlers_ =
    pthread_atfork(detail::backend_before_fork,
                   detail::backend_after_fork,
                   detail::backend_after_fork);

struct Split {
  int64_t begin;
  int64_t end;
  int64_t part;
  detail::RangeFn fn;
  unsigned environment;
  FirstError error;

  static void run(void* self, int job) {
    auto& split = *static_cast<Split*>(self);
    const int64_t part_begin = split.begin + job * split.part;
    if (part_begin >= split.end) {
      return;
    }
    const int64_t part_end = split.end - part_begin > split.part
                                 ? part_begin + split.part
                                 : split.end;
    const RegionGuard guard(job);
    const FloatEnvironment environment(split.environment);
    try {
      split.fn.call(split.fn.context, part_begin, part_end);
    } catch (...) {
      split.error.capture();
    }
  }
};

}  // namespace

int get_num_threads() {
  const int count = num_threads_.load(std::memory_order_relaxed);
  if (count != 0) [[likely]] {
    return count;
  }
  int expected = 0;
  const int chosen = detail::default_num_threads();
  num_threads_.compare_exchange_strong(expected, chosen);
  return num_threads_.load();
}

void set_num_threads(int count) {
  check_count("set_num_threads", count);
  num_threads_.store(count);
}

int get_num_interop_threads() {
  const int count = num_interop_threads_.load();
  return count != 0 ? count : detail::default_num_threads();
}

void set_num_interop_threads(int count) {
  check_count("set_num_interop_threads", count);
  num_interop_threads_.store(count);
}

bool in_parallel_region() { return in_region_; }

int get_thread_num() { return thread_num_; }

namespace detail {

void parallel_for_threads(int64_t begin,
                          int64_t end,
                          int64_t grain,
                          RangeFn fn) {
  const int64_t range = end - begin;
  const int64_t parts_wanted = range / std::max<int64_t>(grain, 1);
  const int64_t parts = std::clamp<int64_t>(parts_wanted, 1, get_num_threads());
  if (parts == 1) {
    fn.call(fn.context, begin, end);
    return;
  }
  Split split{begin,
              end,
              (range + parts - 1) / parts,
              fn,
              FloatEnvironment::current(),
              {}};
  backend_run(static_cast<int>(parts), {&split, Split::run});
  split.error.rethrow();
}

}  // namespace detail
}  // namespace taeda
