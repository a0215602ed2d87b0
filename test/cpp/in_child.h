// A test's body in a child process with a deadline: for what would otherwise
// hang or crash the whole run.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace taeda {

inline constexpr int kDeadlineSeconds = 30;

#if defined(__SANITIZE_THREAD__)

// The thread sanitizer supports no threads in a forked child, so that the test
// runs anew, up to this call of body(), in a process of its own.
template <typename Body>
::testing::AssertionResult in_child(const Body& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [&body] {
    // The sanitizer slows everything down. No alarm(): tests use its signal,
    // which is to reach the body's threads alone.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::seconds(8 * kDeadlineSeconds));
      _exit(2);
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    _exit(body() ? 0 : 1);
  };
  // Reports a failure itself.
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  return ::testing::AssertionSuccess();
}

#else

// True where body() returned true in a forked child before the deadline.
template <typename Body>
::testing::AssertionResult in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body() ? 0 : 1);
  }
  for (int tick = 0; tick < kDeadlineSeconds * 100; ++tick) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) && WEXITSTATUS(status) == 0
                 ? ::testing::AssertionSuccess()
                 : ::testing::AssertionFailure()
                       << "the child ended with status " << status;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return ::testing::AssertionFailure() << "hung";
}

#endif

}  // namespace taeda
