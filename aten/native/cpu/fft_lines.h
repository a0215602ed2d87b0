// Fourier transforms of many lines of one length, side by side.
#pragma once

#include <taeda/aten/native/cpu/kernels/fft.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace taeda::native {

// exp(-2 pi i k / n) for all k below n, each rounded once from its octant.
struct RootsOfUnity {
  explicit RootsOfUnity(int64_t n);
  std::vector<double> re, im;
};

// Where lines lie while they are transformed: element j of line q at
// [j * lanes + q], and as much room for what is made of them.
template <class C>
struct LineBuffers {
  C *re, *im, *other_re, *other_im;
};

// Note [Transforms of lines]
// Lengths without a prime factor above kMostRadix are computed by T. Stockham's
// algorithm (1966) with stages of radix 4, 2, 3, 5 and generic odd ones; others
// as a convolution with a chirp, by L. Bluestein (1970), whose transforms are
// of a power of two. The lines are the innermost dim of each stage, so the same
// loops serve one long line (from the second stage on) and many short ones.
template <class C>
class LineTransform {
 public:
  explicit LineTransform(int64_t n);

  // Numbers that each buffer holds of a line.
  int64_t room() const;
  // Forward transforms of all lines; which buffers hold what changes.
  void run(LineBuffers<C>& lines, int64_t lanes) const;

 private:
  struct Chirp;
  void add_stages(const std::vector<int64_t>& radices);
  void convolve(LineBuffers<C>& lines, int64_t lanes) const;

  int64_t n_;
  std::vector<FftStage<C>> stages_;
  std::vector<C> turns_;  // what the stages point to
  std::shared_ptr<const Chirp> chirp_;
};

// Whether `n` has no prime factor above kMostRadix.
bool has_small_factors(int64_t n);

}  // namespace taeda::native
