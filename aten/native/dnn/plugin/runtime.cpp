#include "runtime.h"

#include <omp.h>

#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/parallel/parallel.h>

namespace taeda::dnn {
namespace {

// TAEDA_CPU_CAPABILITY lowers oneDNN's level too. Only before its first use.
bool limit_isa() {
  switch (cpu_capability()) {
    case CpuCapability::kDefault:
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
      break;
    case CpuCapability::kAvx2:
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
      break;
    case CpuCapability::kAvx512:
      break;
  }
  return true;
}

// Note [Signals and oneDNN's gemm]
// Its generated float32 kernels keep their workspace, a block from malloc, in
// the stack pointer. A signal handler that runs meanwhile puts its frame below,
// into whatever the heap holds there: Ctrl-C in a product ended one program in
// three with "corrupted size vs. prev_size" (oneDNN issue 4845; mended after
// the release that the wheel carries). So signals wait until the product is
// done; those that a fault raises in the code itself do not.
sigset_t asynchronous_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
    sigdelset(&set, fault);
  }
  return set;
}

}  // namespace

// Helpers are OpenMP's own threads, which handle no signals: once held is
// enough.
SignalsHeld::SignalsHeld(bool wanted) : wanted_(wanted) {
  if (!wanted) {
    return;
  }
  static const sigset_t kHeld = asynchronous_signals();
  pthread_sigmask(SIG_BLOCK, &kHeld, &before_);
  if (omp_get_max_threads() == 1 || omp_in_parallel() != 0) {
    return;
  }
#pragma omp parallel
  if (omp_get_thread_num() != 0) {
    static thread_local const int held =
        pthread_sigmask(SIG_BLOCK, &kHeld, nullptr);
    static_cast<void>(held);
  }
}

SignalsHeld::~SignalsHeld() {
  if (wanted_) {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
}

ThreadScope::ThreadScope() : before_(omp_get_max_threads()) {
  static const bool limited = limit_isa();
  static_cast<void>(limited);
#ifdef TAEDA_PARALLEL_STD
  // This build is for the thread sanitizer, which cannot see into libgomp.
  const int wanted = 1;
#else
  const int wanted = in_parallel_region() ? 1 : get_num_threads();
#endif
  if (wanted != before_) {
    omp_set_num_threads(wanted);
  }
}

ThreadScope::~ThreadScope() {
  if (omp_get_max_threads() != before_) {
    omp_set_num_threads(before_);
  }
}

dnnl::engine& engine() {
  // Never destroyed: calls may still run on other threads at exit.
  static auto& instance = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return instance;
}

dnnl::stream& stream() {
  thread_local dnnl::stream instance(engine());
  return instance;
}

}  // namespace taeda::dnn
