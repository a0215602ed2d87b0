// The steps of Fourier transforms of many lines at once.
#pragma once

#include <cstdint>

namespace taeda {

// The largest radix of a stage.
inline constexpr int64_t kMostRadix = 151;

// Rows of complex numbers, whose parts lie in two arrays (`unit` 1) or side by
// side (`unit` 2): number q of row j is at [j * row + q * unit].
template <class T>
struct FftView {
  T *re, *im;
  int64_t row, unit;
};

// A stage of radix `radix` (Stockham's, decimation in frequency): for each p
// below `parts` and d below `rows` it takes rows (p + k * parts) * rows + d, of
// `lanes` numbers, and gives rows (p * radix + k) * rows + d. The numbers of a
// row are lines, what earlier stages have made of them, or both.
template <class T>
struct FftStage {
  int64_t radix = 0, parts = 0, rows = 0, lanes = 0;
  // exp(-2 pi i p k / (radix * parts)) at [p * (radix - 1) + k - 1]: cosines,
  // then sines.
  const T *re = nullptr, *im = nullptr;
  // exp(-2 pi i k / radix), radix numbers, of generic stages.
  const T *root_re = nullptr, *root_im = nullptr;
  T factor = 1;  // what the results are multiplied by
};

// exp(-2 pi i k / (2 half)) for the k below `half`.
template <class T>
struct FftRoots {
  int64_t half;
  const T *re, *im;
};

template <class T>
struct FftKernels {
  int64_t width;  // numbers in the widest vector
  void (*stage)(const FftStage<T>&,
                const FftView<const T>& in,
                const FftView<T>& out);
  // The first stage of one line, whose elements are the rows of `in`: of radix
  // `radix`, which is the width of a vector, with at least so many parts. Its
  // roots lie at [(k - 1) * parts + p].
  void (*first)(const FftStage<T>&,
                const FftView<const T>& in,
                const FftView<T>& out);
  // Spectra of lines of 2 half real numbers, times 2, from those of their even
  // elements as real and odd ones as imaginary parts; or the way back. In
  // columns, `lanes` lines are rows; otherwise one line is a row.
  void (*join)(const FftRoots<T>&,
               const FftView<const T>& in,
               const FftView<T>& out,
               int64_t lanes);
  void (*split)(const FftRoots<T>&,
                const FftView<const T>& in,
                const FftView<T>& out,
                int64_t lanes);
  // Numbers times those of a table; a row of n.
  void (*product)(const T* re,
                  const T* im,
                  const FftView<const T>& in,
                  const FftView<T>& out,
                  int64_t n);
  // Number q of row j times number j of `row` and number [j * lanes + q] of
  // `all`, each of which is real parts and then imaginary ones.
  void (*turn)(const T* row,
               const T* all,
               const FftView<T>& numbers,
               int64_t rows,
               int64_t lanes);
  // Element n - k of a line of n complex numbers from element k.
  void (*mirror)(T* line, int64_t n);
  // Rows of complex numbers, `in_row` and `out_row` real ones apart, become
  // columns.
  void (*transpose)(const T* in,
                    int64_t in_row,
                    T* out,
                    int64_t out_row,
                    int64_t rows,
                    int64_t columns);
};

struct FftTable {
  FftKernels<float> f32;
  FftKernels<double> f64;
};

namespace isa_default {
extern const FftTable kFftTable;
}
namespace isa_avx2 {
extern const FftTable kFftTable;
}
namespace isa_avx512 {
extern const FftTable kFftTable;
}

}  // namespace taeda
