// How many threads to use when nobody said.
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <taeda/aten/parallel/backend.h>
#include <taeda/aten/parallel/thread_count.h>

namespace taeda::detail {
namespace {

int affinity_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  // More processors than cpu_set_t has bits for.
  return std::max(1u, std::thread::hardware_concurrency());
}

int cpus_of_quota(double quota, double period) {
  if (quota <= 0 || period <= 0) {
    return 0;
  }
  return std::max(1, static_cast<int>((quota + period - 1) / period));
}

// 0 where the file is absent or says "no limit" (v2: "max", v1: -1).
double read_number(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : 0;
}

int limit_of_folder(const std::string& folder) {
  std::ifstream v2(folder + "/cpu.max");
  double quota = 0;
  double period = 0;
  if (v2) {
    return v2 >> quota >> period ? cpus_of_quota(quota, period) : 0;
  }
  return cpus_of_quota(read_number(folder + "/cpu.cfs_quota_us"),
                       read_number(folder + "/cpu.cfs_period_us"));
}

// A group's limit holds for its descendants, so every folder up to the mount
// counts. Inside a container the path names the host's tree and only the mount
// itself exists, which the walk reaches last.
int limit_of_path(const std::string& mount, std::string path) {
  int limit = 0;
  while (true) {
    const int here = limit_of_folder(mount + path);
    if (here > 0) {
      limit = limit == 0 ? here : std::min(limit, here);
    }
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) {
      return limit;
    }
    path.resize(slash);
  }
}

bool names_cpu_controller(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

int cgroup_cpu_limit(const std::string& proc_file, const std::string& mount) {
  std::ifstream file(proc_file);
  std::string line;
  int limit = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string id;
    std::string controllers;
    std::string path;
    std::getline(fields, id, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    int here = 0;
    if (controllers.empty()) {
      here = limit_of_path(mount, path);
    } else if (names_cpu_controller(controllers)) {
      here = limit_of_path(mount + "/" + controllers, path);
      here = here == 0 ? limit_of_path(mount + "/cpu", path) : here;
    }
    if (here > 0) {
      limit = limit == 0 ? here : std::min(limit, here);
    }
  }
  return limit;
}

int threads_from_environment(const char* text) {
  if (text == nullptr) {
    return 0;
  }
  // A list gives one count per nesting level; the first is the outermost.
  char* end = nullptr;
  const long count = std::strtol(text, &end, 10);
  const bool valid =
      end != text && (*end == '\0' || *end == ',' || *end == ' ');
  return valid && count > 0 && count < 65536 ? static_cast<int>(count) : 0;
}

int default_num_threads() {
  const int asked = threads_from_environment(std::getenv("OMP_NUM_THREADS"));
  if (asked > 0) {
    return asked;
  }
  const int processors = affinity_count();
  const int limit = cgroup_cpu_limit("/proc/self/cgroup", "/sys/fs/cgroup");
  return limit > 0 ? std::min(limit, processors) : processors;
}

}  // namespace taeda::detail
