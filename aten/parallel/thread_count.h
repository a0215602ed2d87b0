// The parts of the default thread count that a test can feed.
#pragma once

#include <string>

#include <taeda/aten/parallel/parallel.h>

namespace taeda::detail {

// Whole processors (rounded up) that the control groups named in `proc_file`
// (the format of /proc/self/cgroup) allow; 0 for no limit. Reads v2's cpu.max
// and v1's cpu.cfs_quota_us below `mount`.
TAEDA_API int cgroup_cpu_limit(const std::string& proc_file,
                               const std::string& mount);

// The count that an OMP_NUM_THREADS value asks for; 0 where it asks for none.
TAEDA_API int threads_from_environment(const char* text);

}  // namespace taeda::detail
