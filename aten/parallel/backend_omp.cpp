// The only file with OpenMP pragmas; built with -fopenmp.
#ifndef TAEDA_PARALLEL_STD

#include <omp.h>

#include <taeda/aten/parallel/backend.h>

namespace taeda::detail {

void backend_run(int count, JobFn fn) {
#pragma omp parallel num_threads(count)
  {
    // Fewer threads than asked for come when a limit of the runtime is hit.
    const int team = omp_get_num_threads();
    for (int job = omp_get_thread_num(); job < count; job += team) {
      fn.call(fn.context, job);
    }
  }
}

// Without this a child's first region waits for threads that fork() did not
// copy. Refused (harmlessly) inside a region.
void backend_before_fork() { omp_pause_resource_all(omp_pause_soft); }

void backend_after_fork() {}

}  // namespace taeda::detail

#endif  // TAEDA_PARALLEL_STD
