// Runs a device kernel, compiled as host C++, beside the CPU kernel of the same
// record and compares every element. Only the tests include it. Without a
// CPU kernel the device kernel only runs, for host_calls.h.
#pragma once

#include "host_calls.h"
#include "host_device.h"

#include <taeda/aten/native/cpu/kernels/reduce_table.h>
#include <taeda/aten/native/cuda/prelude.cuh>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace taeda {
using ChunkFn = void (*)(void* const* ptrs, const void* scalars, int64_t n);
using ChunkTable = ChunkFn[10];
}  // namespace taeda

namespace host_run {

using taeda::complex;
using taeda::DeviceGeometry;
using taeda::Long;

constexpr int kSizes[] = {30, 5, 4};  // innermost first
constexpr int kCount = 30 * 5 * 4;
constexpr int kBufferSize = 4 * kCount;

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<complex<T>> : std::true_type {};

// Element i of an operand: special values and small numbers in turn. Integers
// are never 0, because what dividing by it does is the operator's business.
// Operands after the first may be degrees of polynomials, which take so many
// steps: their large number is one that a loop reaches in no time.
template <class T>
T sample(unsigned i, unsigned seed, bool first = true) {
  unsigned hash = (i * 2654435761u + seed * 40503u) >> 7;
  if constexpr (IsComplex<T>::value) {
    using R = typename taeda::RealOfType<T>::type;
    R real = static_cast<R>(static_cast<int>(hash % 97) - 48) / R(16);
    R imag = static_cast<R>(static_cast<int>(hash / 97 % 89) - 44) / R(16);
    return T(real, imag);
  } else if constexpr (std::is_same_v<T, bool>) {
    return hash % 3 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    int value = static_cast<int>(hash % 20) + 1;
    return static_cast<T>(std::is_signed_v<T> && hash % 7 < 3 ? -value : value);
  } else {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const T special[] = {T(0),
                         -T(0),
                         T(1),
                         T(-1),
                         kInfinity,
                         -kInfinity,
                         std::numeric_limits<T>::quiet_NaN(),
                         first ? T(1e10) : T(1e4),
                         T(1e-6)};
    if (hash % 5 == 0) return special[hash / 5 % 9];
    return static_cast<T>(static_cast<int>(hash % 401) - 200) / T(64);
  }
}

template <class T>
bool same(T a, T b) {
  if constexpr (IsComplex<T>::value) {
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  } else if constexpr (std::is_floating_point_v<T>) {
    return a == b || (std::isnan(a) && std::isnan(b));
  } else {
    return a == b;
  }
}

template <class T>
double as_double(T a) {
  if constexpr (IsComplex<T>::value) {
    return static_cast<double>(a.real());
  } else {
    return static_cast<double>(a);
  }
}

inline int failures = 0;

template <class T>
void expect(const char* name, int at, T got, T want, bool right) {
  if (right) return;
  if (++failures > 60) return;
  std::printf("%s: element %d: device %.17g, CPU %.17g\n",
              name,
              at,
              as_double(got),
              as_double(want));
}

// How the operands lie: the result with gaps, the first operand transposed, the
// second one broadcast along the outer dims, others contiguous.
inline DeviceGeometry layout(int operand, bool strided) {
  constexpr int kStrides[][3] = {
      {2, 60, 300}, {20, 4, 1}, {1, 0, 0}, {1, 30, 150}};
  DeviceGeometry g{};
  g.dims = 3;
  g.contiguous = !strided;
  for (int d = 0; d < 3; ++d) {
    g.sizes[d] = kSizes[d];
    g.strides[d] = kStrides[strided && operand < 3 ? operand : 3][d];
  }
  return g;
}
inline int place(const DeviceGeometry& g, int i) {
  int x = i % kSizes[0], y = i / kSizes[0] % kSizes[1];
  int z = i / (kSizes[0] * kSizes[1]);
  return static_cast<int>(x * g.strides[0] + y * g.strides[1] +
                          z * g.strides[2]);
}

// Both sides' arguments of one call, made in the order of the parameters.
struct Call {
  bool strided;
  unsigned seed;
  int operands = 0, scalars = 0;
  std::vector<std::vector<std::byte>> device, cpu;
  alignas(16) unsigned char slots[16 * 16] = {};

  template <class P>
  P take(bool last) {
    if constexpr (std::is_pointer_v<P>) {
      using T = std::remove_const_t<std::remove_pointer_t<P>>;
      DeviceGeometry g = layout(++operands, strided);
      auto& there = device.emplace_back(kBufferSize * sizeof(T));
      auto& here = cpu.emplace_back(kCount * sizeof(T));
      auto* in = reinterpret_cast<T*>(there.data());
      for (int i = 0; i < kBufferSize; ++i)
        in[i] = sample<T>(i, seed + operands, operands == 1);
      for (int i = 0; i < kCount; ++i) {
        reinterpret_cast<T*>(here.data())[i] = in[place(g, i)];
      }
      return in;
    } else if constexpr (std::is_same_v<P, DeviceGeometry>) {
      return layout(operands, strided);
    } else {
      if (last) return static_cast<P>(Long{kCount});
      P value = sample<P>(1000 + 7 * ++scalars, seed);
      std::memcpy(slots + 16 * (scalars - 1), &value, sizeof(P));
      return value;
    }
  }
};

template <class P>
Argument argument_of(const P& a) {
  if constexpr (std::is_pointer_v<P>) {
    return {true, a, kBufferSize * sizeof(std::remove_pointer_t<P>)};
  } else {
    return {false, &a, sizeof(P)};
  }
}

// Results as they stand in `out` behind each other.
template <class R>
void write_results(const R* out, const std::vector<int>& places) {
  std::vector<std::byte> values(places.size() * sizeof(R));
  for (size_t i = 0; i < places.size(); ++i) {
    std::memcpy(values.data() + i * sizeof(R), out + places[i], sizeof(R));
  }
  CallsFile::get().results(
      kind_of_number<R>(), sizeof(R), places, values.data());
}

template <class R, class... P>
void write_call(const char* name,
                const R* out,
                const DeviceGeometry& g,
                const std::tuple<P...>& arguments) {
  CallsFile::get().begin(name, /*blocks=*/3, /*threads=*/32);
  std::vector<Argument> all{argument_of(out), argument_of(g)};
  std::apply([&](const auto&... a) { (all.push_back(argument_of(a)), ...); },
             arguments);
  CallsFile::get().arguments(all);
  std::vector<int> places;
  for (int i = 0; i < kCount; ++i) places.push_back(place(g, i));
  write_results(out, places);
}

template <class R, class... P>
void pointwise(const char* name,
               void (*kernel)(R*, DeviceGeometry, P...),
               taeda::ChunkFn cpu) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    Call call{seed % 2 == 1, seed};
    int index = 0, last = sizeof...(P);
    std::tuple<P...> arguments{call.take<P>(++index == last)...};
    DeviceGeometry g = layout(0, call.strided);
    std::vector<std::byte> got(kBufferSize * sizeof(R)), want(got.size());
    host_device::launch({3, 1}, 32, call.strided, [&] {
      std::apply(
          [&](auto... a) { kernel(reinterpret_cast<R*>(got.data()), g, a...); },
          arguments);
    });
    if (CallsFile::get()) {
      write_call(name, reinterpret_cast<R*>(got.data()), g, arguments);
    }
    if (cpu == nullptr) continue;
    std::vector<void*> pointers{want.data()};
    for (auto& operand : call.cpu) pointers.push_back(operand.data());
    cpu(pointers.data(), call.slots, kCount);
    for (int i = 0; i < kCount; ++i) {
      R a = reinterpret_cast<R*>(got.data())[place(g, i)];
      R b = reinterpret_cast<R*>(want.data())[i];
      expect(name, i, a, b, same(a, b));
    }
  }
}

// Values whose sums and products of kLong stay in range and lose few digits.
template <class T>
T gentle(unsigned i) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(i % 3 + 1);
  using R = taeda::RealOf<T>;
  R real = R(1) + static_cast<R>(static_cast<int>(i * 37 % 21) - 10) / R(128);
  if constexpr (IsComplex<T>::value) return T(real, real - R(1));
  return T(real);
}

template <class T, class R>
void reduction(const char* name,
               void (*kernel)(const T*,
                              R*,
                              DeviceGeometry,
                              DeviceGeometry,
                              Long,
                              const T*),
               const taeda::ReduceKernel& cpu) {
  constexpr int kKept = 6, kLong = 50;
  constexpr unsigned kThreads = 16;
  T in[kKept * kLong], row[kLong];
  const T scalars[] = {T(2), T(3)};
  alignas(16) unsigned char slots[32] = {};
  for (int s = 0; s < 2; ++s)
    std::memcpy(slots + 16 * s, scalars + s, sizeof(T));
  for (unsigned i = 0; i < kKept * kLong; ++i) in[i] = gentle<T>(i);
  R got[kKept];
  DeviceGeometry kept{1, 0, {kKept}, {1}}, reduced{1, 0, {kLong}, {kKept}};
  host_device::launch({kKept, 1}, kThreads, /*backwards=*/false, [&] {
    kernel(in, got, kept, reduced, kLong, scalars);
  });
  if (CallsFile::get()) {
    Long count = kLong;
    CallsFile::get().begin(name, kKept, kThreads);
    CallsFile::get().arguments({{true, in, sizeof(in)},
                                {true, got, sizeof(got)},
                                argument_of(kept),
                                argument_of(reduced),
                                argument_of(count),
                                {true, scalars, sizeof(scalars)}});
    write_results(got, {0, 1, 2, 3, 4, 5});
  }
  for (int i = 0; i < kKept && cpu.init != nullptr; ++i) {
    for (int k = 0; k < kLong; ++k) row[k] = in[k * kKept + i];
    T sum;
    R want;
    cpu.init(&sum, 1);
    cpu.inner(row, kLong, &sum, slots);
    cpu.finish(&sum, &want, 1, kLong, slots);
    double a = as_double(got[i]), b = as_double(want);
    // The CPU adds in another order.
    bool single = std::is_same_v<taeda::RealOf<T>, float>;
    double error = (single ? 1e-5 : 1e-13) * std::fmax(1.0, std::fabs(b));
    bool exact = std::is_integral_v<T>;
    expect(name,
           i,
           got[i],
           want,
           exact ? same(got[i], want) : std::fabs(a - b) <= error);
  }
}

}  // namespace host_run
