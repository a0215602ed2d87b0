// What a thread backend offers to parallel.cpp. Exactly one of backend_omp.cpp
// and backend_std.cpp is compiled to code.
#pragma once

#include <taeda/aten/parallel/parallel.h>

namespace taeda::detail {

struct JobFn {
  void* context;
  void (*call)(void* context, int job);
};

// Runs fn for 0 .. count-1 on up to `count` threads, the caller being one; may
// give a thread several jobs. fn must not throw.
void backend_run(int count, JobFn fn);

// Around fork(): afterwards both processes can compute in parallel again.
void backend_before_fork();
void backend_after_fork();

// thread_count.cpp
int default_num_threads();

}  // namespace taeda::detail
