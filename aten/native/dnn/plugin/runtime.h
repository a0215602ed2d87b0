// What every file of the plugin needs from oneDNN.
#pragma once

#include <signal.h>
#include <dnnl.hpp>

namespace taeda::dnn {

// While it lives, this thread's OpenMP regions have the thread count of
// parallel_for (one inside of a part). Put back afterwards, for libgomp may be
// shared with PyTorch, whose count it is. One around every entry.
class ThreadScope {
 public:
  ThreadScope();
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

// While it lives, signals wait on this thread and on the OpenMP threads that
// help it. See Note [Signals and oneDNN's gemm].
class SignalsHeld {
 public:
  explicit SignalsHeld(bool wanted = true);
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  bool wanted_;
  sigset_t before_;
};

// The process's CPU engine, and this thread's stream on it.
dnnl::engine& engine();
dnnl::stream& stream();

}  // namespace taeda::dnn
