#include <taeda/aten/cpu_capability.h>

#include <cstdlib>
#include <cstring>

namespace taeda {
namespace {

CpuCapability supported_capability() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // libgcc's checks include the operating system's XSAVE state.
  const bool avx2 = __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx512) {
    return CpuCapability::kAvx512;
  }
  if (avx2) {
    return CpuCapability::kAvx2;
  }
#endif
  return CpuCapability::kDefault;
}

}  // namespace

namespace detail {

CpuCapability choose_capability(CpuCapability supported, const char* wanted) {
  if (wanted == nullptr) {
    return supported;
  }
  CpuCapability level = supported;
  if (std::strcmp(wanted, "default") == 0) {
    level = CpuCapability::kDefault;
  } else if (std::strcmp(wanted, "avx2") == 0) {
    level = CpuCapability::kAvx2;
  } else if (std::strcmp(wanted, "avx512") == 0) {
    level = CpuCapability::kAvx512;
  }
  return level < supported ? level : supported;
}

}  // namespace detail

CpuCapability cpu_capability() {
  static const CpuCapability level = detail::choose_capability(
      supported_capability(), std::getenv("TAEDA_CPU_CAPABILITY"));
  return level;
}

const char* cpu_capability_name() {
  static constexpr const char* kNames[] = {"DEFAULT", "AVX2", "AVX512"};
  return kNames[static_cast<int>(cpu_capability())];
}

}  // namespace taeda
