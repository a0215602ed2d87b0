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

}  // namespace

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
