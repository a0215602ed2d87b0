// Places of images and volumes, per ISA level.
#pragma once

#include <taeda/aten/native/grid_sampler.h>

#include <cstddef>
#include <cstdint>

namespace taeda {

// One batch element: its channels lie `plane` apart, those of the result
// `places`. `sizes` has as many axes as the grid's places have coordinates.
struct GridJob {
  native::Sampling how;
  int64_t sizes[3];
  int64_t channels, plane, places;
};

template <class T>
struct GridKernels {
  // `count` places that follow each other. `out` is the first one's.
  void (*sample)(
      const GridJob& job, const T* grid, const T* image, T* out, int64_t count);
  // Adds to dx and writes dgrid; either may be null.
  void (*gradients)(const GridJob& job,
                    const T* grid,
                    const T* image,
                    const T* dy,
                    T* dx,
                    T* dgrid,
                    int64_t count);
};

// By axes less two.
struct GridTable {
  GridKernels<float> f32[2];
  GridKernels<double> f64[2];
  const GridKernels<float>& of(float, size_t axes) const {
    return f32[axes - 2];
  }
  const GridKernels<double>& of(double, size_t axes) const {
    return f64[axes - 2];
  }
};

namespace isa_default {
extern const GridTable kGridTable;
}
namespace isa_avx2 {
extern const GridTable kGridTable;
}
namespace isa_avx512 {
extern const GridTable kGridTable;
}

}  // namespace taeda
