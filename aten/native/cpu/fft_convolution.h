// Fourier transforms of lines of other lengths than stages are for.
#pragma once

#include <taeda/aten/native/cpu/fft_lines.h>

namespace taeda::native {

// One line's transform as a convolution, whose own transforms have stages. Of
// prime n, if n - 1 has small factors, the elements from 1 on in the order of
// powers of a generator are convolved with roots of unity in that order (C.
// Rader, 1968); of other n the line times a chirp with a chirp (L. Bluestein,
// 1970).
template <class C>
class LineConvolution {
 public:
  explicit LineConvolution(int64_t n);

  int64_t scratch() const { return 2 * length_ + whole_.scratch(1); }
  size_t numbers() const;
  // As LineTransform::run; the elements of the line are neighbours.
  void run(const FftView<const C>& in,
           const FftView<C>& out,
           double factor,
           C* scratch) const;

 private:
  void plan_powers();
  void plan_chirp();

  int64_t n_;
  int64_t generator_;  // 0: of a chirp
  int64_t length_;     // of the convolution
  LineTransform<C> whole_;
  // Where element k of the convolution is read and written.
  std::vector<int32_t> from_, to_;
  std::vector<C> chirp_re_, chirp_im_;  // exp(-pi i k^2 / n)
  // The transform of what is convolved with, over the length.
  std::vector<C> filter_re_, filter_im_;
};

}  // namespace taeda::native
