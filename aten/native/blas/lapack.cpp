#include <taeda/aten/native/blas/lapack.h>

#include <cstdlib>
#include <optional>
#include <string>

#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/native/blas/load_library.h>
#include <taeda/c10/util/check.h>

// The build names the library: PyPI's scipy-openblas32 or the system's.
#ifndef TAEDA_OPENBLAS_FILE
#define TAEDA_OPENBLAS_FILE "libscipy_openblas.so"
#define TAEDA_OPENBLAS_PREFIX "scipy_"
#endif

namespace taeda::blas {
namespace {

// Sets a variable while a library reads it at its load.
class EnvironmentScope {
 public:
  EnvironmentScope(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) {
      before_ = before;
    }
    setenv(name, value, 1);
  }
  ~EnvironmentScope() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// The core that OpenBLAS knows for a level below the processor's own.
const char* core_of_level() {
  switch (cpu_capability()) {
    case CpuCapability::kDefault:
      return "Nehalem";
    case CpuCapability::kAvx2:
      return "Haswell";
    case CpuCapability::kAvx512:
      break;
  }
  return "SkylakeX";
}

// With one thread it starts none, so there is nothing to keep in step with
// parallel_for, to stop before a fork, or to hang: see docs/design/blas.md.
void* open_openblas() {
  const EnvironmentScope threads("OPENBLAS_NUM_THREADS", "1");
  std::optional<EnvironmentScope> core;
  // Debian 12's 0.3.21 takes newer processors for a Pentium 4.
  const bool is_system_library = sizeof(TAEDA_OPENBLAS_PREFIX) == 1;
  const bool is_lowered = std::getenv("TAEDA_CPU_CAPABILITY") != nullptr;
  if ((is_system_library || is_lowered) &&
      std::getenv("OPENBLAS_CORETYPE") == nullptr) {
    core.emplace("OPENBLAS_CORETYPE", core_of_level());
  }
  return load_library(TAEDA_OPENBLAS_FILE,
                      "float64 and complex matrix products and linalg");
}

class OpenBlas {
 public:
  OpenBlas() : library_(open_openblas()) {
    // A system's build may count its threads by OMP_NUM_THREADS instead.
    void (*set_threads)(int) = nullptr;
    bind(set_threads, "openblas_set_num_threads");
    set_threads(1);
    bind_real(f32_, 's');
    bind_real(f64_, 'd');
    bind_complex(c64_, 'c');
    bind_complex(c128_, 'z');
  }

  const Routines<float>& get(float) const { return f32_; }
  const Routines<double>& get(double) const { return f64_; }
  const Routines<complex<float>>& get(complex<float>) const { return c64_; }
  const Routines<complex<double>>& get(complex<double>) const { return c128_; }

 private:
  template <typename F>
  void bind(F& slot, const std::string& name) {
    const std::string symbol = TAEDA_OPENBLAS_PREFIX + name;
    slot = reinterpret_cast<F>(find_symbol(library_, symbol.c_str()));
    TAEDA_CHECK(
        slot != nullptr, TAEDA_OPENBLAS_FILE, " has no symbol ", symbol);
  }

  template <typename F>
  void bind_routine(F& slot, char type, const char* name) {
    bind(slot, std::string(1, type) + name + "_");
  }

  template <typename T>
  void bind_common(CommonRoutines<T>& r, char type) {
    bind_routine(r.gemm, type, "gemm");
    bind_routine(r.gemv, type, "gemv");
    bind_routine(r.trsm, type, "trsm");
    bind_routine(r.getrf, type, "getrf");
    bind_routine(r.getrs, type, "getrs");
    bind_routine(r.getri, type, "getri");
    bind_routine(r.potrf, type, "potrf");
    bind_routine(r.potrs, type, "potrs");
    bind_routine(r.potri, type, "potri");
    bind_routine(r.trtrs, type, "trtrs");
    bind_routine(r.geqrf, type, "geqrf");
    bind_routine(r.gels, type, "gels");
    bind_routine(r.sytrf, type, "sytrf");
    bind_routine(r.sytrs, type, "sytrs");
  }

  // The same names with other argument lists for real and complex.
  template <typename R>
  void bind_decompositions(R& r, char type) {
    bind_routine(r.geev, type, "geev");
    bind_routine(r.gesdd, type, "gesdd");
    bind_routine(r.gesvd, type, "gesvd");
    bind_routine(r.gelsy, type, "gelsy");
    bind_routine(r.gelsd, type, "gelsd");
    bind_routine(r.gelss, type, "gelss");
  }

  template <typename T>
  void bind_real(RealRoutines<T>& r, char type) {
    bind_common(r, type);
    bind_decompositions(r, type);
    bind_routine(r.orgqr, type, "orgqr");
    bind_routine(r.ormqr, type, "ormqr");
    bind_routine(r.syevd, type, "syevd");
  }

  template <typename T>
  void bind_complex(ComplexRoutines<T>& r, char type) {
    bind_common(r, type);
    bind_decompositions(r, type);
    bind_routine(r.orgqr, type, "ungqr");
    bind_routine(r.ormqr, type, "unmqr");
    bind_routine(r.syevd, type, "heevd");
    bind_routine(r.hetrf, type, "hetrf");
    bind_routine(r.hetrs, type, "hetrs");
  }

  void* library_;
  Routines<float> f32_{};
  Routines<double> f64_{};
  Routines<complex<float>> c64_{};
  Routines<complex<double>> c128_{};
};

// Never destroyed: calls may still run on other threads at exit. A failed load
// throws and is tried again by the next call.
OpenBlas& openblas() {
  static auto& instance = *new OpenBlas;
  return instance;
}

}  // namespace

template <typename T>
const Routines<T>& lapack() {
  return openblas().get(T{});
}

template TAEDA_API const Routines<float>& lapack<float>();
template TAEDA_API const Routines<double>& lapack<double>();
template TAEDA_API const Routines<complex<float>>& lapack<complex<float>>();
template TAEDA_API const Routines<complex<double>>& lapack<complex<double>>();

}  // namespace taeda::blas
