// What the stand-ins of cuSOLVER and cuBLAS share: calls of LAPACK in the order
// of the streams.
//
// They are as strict as the libraries: sizes, leading dimensions, types, jobs
// and workspace that theirs refuse are refused here; matrices have no gaps
// between their columns. Workspace is written over. What is read and written
// passes the memory checker.
#pragma once

#include "emulator.h"

#include <taeda/aten/native/blas/lapack.h>
#include <taeda/c10/cuda/cublas.h>
#include <taeda/c10/cuda/cusolver.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace taeda::cuda::cusolver {
struct HandleObject {
  void* stream = nullptr;
};
struct ParamsObject {};
}  // namespace taeda::cuda::cusolver
namespace taeda::cuda::cublas {
struct HandleObject {
  void* stream = nullptr;
};
}  // namespace taeda::cuda::cublas

namespace emulator {

namespace cusolver = taeda::cuda::cusolver;
namespace cublas = taeda::cuda::cublas;
using taeda::blas::Int;
using taeda::blas::lapack;
using taeda::blas::real_t;

inline constexpr int kInvalidValue = 3, kFailed = 6, kInvalidInCublas = 7;

template <class F>
void by_type(int type, F f) {
  if (type == cusolver::kReal32) f(float{});
  if (type == cusolver::kReal64) f(double{});
  if (type == cusolver::kComplex32) f(taeda::complex<float>{});
  if (type == cusolver::kComplex64) f(taeda::complex<double>{});
}
inline bool is_real(int type) { return type < cusolver::kComplex32; }
inline int real_type(int type) { return is_real(type) ? type : type - 4; }
inline bool is_type(int type) {
  const auto& all = cusolver::kTypes;
  return std::find(all.begin(), all.end(), type) != all.end();
}
inline size_t size_of(int type) {
  size_t real = real_type(type) == cusolver::kReal64 ? 8 : 4;
  return is_real(type) ? real : 2 * real;
}

// Memory of one operand.
struct Part {
  const void* at;
  int64_t elements;
  int type;
  bool writes = true;

  bool ok() const {
    return elements == 0 ||
           touch(at, static_cast<size_t>(elements) * size_of(type), false);
  }
  void written() const {
    if (elements > 0 && writes) {
      touch(at, static_cast<size_t>(elements) * size_of(type), true);
    }
  }
};

// What a call is to have: sizes that grow with the problem, so that one kept
// for another problem shows.
inline size_t device_bytes(int64_t m, int64_t n) {
  return 256 + 16 * static_cast<size_t>(m + n);
}
inline size_t host_bytes(int64_t n) { return 64 + 8 * static_cast<size_t>(n); }

struct Workspace {
  void* on_device;
  size_t device_bytes;
  void* on_host;
  size_t host_bytes;

  bool covers(int64_t m, int64_t n) const {
    return on_device != nullptr &&
           device_bytes >= emulator::device_bytes(m, n) && on_host != nullptr &&
           host_bytes >= emulator::host_bytes(n);
  }
  void spoil() const {
    if (touch(on_device, device_bytes, true)) {
      std::memset(on_device, 0x5a, device_bytes);
    }
  }
};

inline void put_info(int* info, int value) {
  if (touch(info, sizeof(int), true)) std::memcpy(info, &value, sizeof(int));
}

// `run` gives what goes to `info`; results are written parts, `reads` are
// looked at before.
inline int enqueue(void* stream,
                   const char* what,
                   const Workspace& workspace,
                   std::vector<Part> reads,
                   std::vector<Part> writes,
                   int* info,
                   std::function<int()> run) {
  auto work = [=]() -> Result {
    Opened opened;
    Machine::get().running = what;
    Machine::get().reported = false;
    if (workspace.device_bytes > 0) workspace.spoil();
    bool ok = true;
    for (const Part& part : reads) ok = part.ok() && ok;
    for (const Part& part : writes) part.written();
    int said = ok ? run() : 0;
    if (info != nullptr) put_info(info, said);
    Machine::get().running.clear();
    return 0;
  };
  Result status = Machine::get().enqueue(stream, {what, work});
  return status == 0 ? 0 : kFailed;
}

template <class T, class F>
void with_workspace(F call) {
  T size{};
  Int query = -1;
  call(&size, &query);
  Int count = static_cast<Int>(reinterpret_cast<real_t<T>&>(size)) + 1;
  std::vector<T> work(static_cast<size_t>(count));
  call(work.data(), &count);
}

inline const char* letter(int triangle) {
  return triangle == cusolver::kLower ? "L" : "U";
}
inline bool is_one_of_two(int value) { return value == 0 || value == 1; }

}  // namespace emulator
