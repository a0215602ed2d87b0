// The parts of random filling that profit from vector code.
#pragma once

#include <taeda/c10/core/mt19937.h>

#include <cstdint>

namespace taeda {

struct RandomTable {
  /// The next `count` words of the stream.
  void (*words)(Mt19937& engine, uint32_t* out, int64_t count);
  /// Uniform on [from, to): one word a float, two a double.
  void (*uniform_float)(
      Mt19937& engine, float* out, int64_t count, float from, float to);
  void (*uniform_double)(
      Mt19937& engine, double* out, int64_t count, double from, double to);
  /// Turns groups of 16 uniform values into normal ones, in place.
  void (*normal_groups_float)(float* data,
                              int64_t groups,
                              float mean,
                              float std);
  void (*normal_groups_double)(double* data,
                               int64_t groups,
                               double mean,
                               double std);
};

namespace isa_default {
extern const RandomTable kRandomTable;
}
namespace isa_avx2 {
extern const RandomTable kRandomTable;
}
namespace isa_avx512 {
extern const RandomTable kRandomTable;
}

}  // namespace taeda
