// Fourier transforms of lines that no cache holds.
#pragma once

#include <taeda/aten/native/cpu/fft_lines.h>

namespace taeda::native {

// Element [j][i] of a matrix of `rows` times `columns` is element j * columns +
// i of the line. Columns are transformed, each result turned by a root of unity
// of the whole, and rows transformed; column k of them is the k-th part of the
// spectrum. Of each step some neighbouring lines are done together.
template <class C>
class LargeTransform {
 public:
  LargeTransform(int64_t rows, int64_t columns);

  // Null where n is not large or has no two factors of its root's magnitude.
  static std::shared_ptr<const LargeTransform> of(int64_t n);

  // As LineTransform::run; the elements of the line are neighbours.
  void run(const FftView<const C>& in,
           const FftView<C>& out,
           double factor) const;
  size_t numbers() const;

 private:
  // 128 bytes of complex numbers.
  static constexpr int64_t kTogether = 64 / int64_t{sizeof(C)};

  void columns_from(const FftView<const C>& in,
                    int64_t first,
                    C* out,
                    C* room) const;
  // Root number k of the whole line's.
  void root(int64_t k, double& re, double& im) const;

  int64_t rows_, columns_;
  LineTransform<C> of_column_, of_row_;
  RootsOfUnity coarse_;                    // of `columns` times the number
  std::vector<double> fine_re_, fine_im_;  // the first `columns`
  // Number j * q of all for row j and each q below kTogether.
  std::vector<C> turns_;
};

}  // namespace taeda::native
